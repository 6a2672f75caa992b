"""What a guarantee means for one person: the risk that an attacker's guess about them is right.

Symbols: ``h(a) = sup_S P(S) - a Q(S)`` is the curve of an ordered pair, ``delta(eps) = h(e^eps)``.

An attacker who takes the record to be in the data with prior probability pi, and guesses from the output S, errs with
probability ``pi (1 - P(S)) + (1 - pi) Q(S)``; the least over S is ``pi (1 - h((1 - pi) / pi))``. For pi above 1/2 it
is the same with the datasets exchanged: with q the smaller of pi and 1 - pi, ``q (1 - delta(ln((1 - q) / q)))``
(Kulynych et al. 2025). No other point of the curve matters, so the risk is as certain as the curve there.
"""

from __future__ import annotations

import math

from hockeystick.bound import Bound, Estimate, from_sides
from hockeystick.decimals import plain
from hockeystick.errors import check_inside, public_door
from hockeystick.numerics.rounding import U, down, up
from hockeystick.readouts.directions import Asked
from hockeystick.together import Curve


@public_door
def bayes_risk(curve: Curve, prior: float) -> Bound | Estimate:
    """The smallest probability of error of anyone who guesses whether a record was in the data.

    Parameters
    ----------
    curve : PrivacyCurve
        From `hockeystick.account`. Both ways round count: for the worse of the two.
    prior : float
        The attacker's probability, before seeing the output, that the record is in the data (or that a binary attribute
        is 1, for the relation of substitution). Guessing alone errs with probability ``min(prior, 1 - prior)``.

    Returns
    -------
    Bound or Estimate
        ``lower`` is the guarantee: nobody errs less often.

    Examples
    --------
    >>> import hockeystick as hs
    >>> f"{bayes_risk(hs.account(hs.Gaussian(1.0)), prior=0.5):.6f}"
    '[0.308537, 0.308538]'
    """
    believed = check_inside("prior", prior)
    rarer = min(believed, 1.0 - believed)
    ask = Asked(curve)
    delta = ask.both_ways()
    epsilon = decisive_epsilon(rarer)
    largest = delta(max(down(epsilon, 8.0 * U), 0.0)).upper
    smallest = delta(up(epsilon, 8.0 * U)).lower
    low, high = down(rarer * (1.0 - largest), 8.0 * U), min(up(rarer * (1.0 - smallest), 8.0 * U), rarer)
    method, notes = f"Bayes risk of {curve.accountant.name}", (f"prior {plain(believed)}",)
    if ask.certified:
        return from_sides(low, high, method, notes)
    return Estimate(0.5 * (low + high), high - low, method, notes)


def decisive_epsilon(rarer: float) -> float:
    """The epsilon whose delta decides, ``ln((1 - q) / q)`` for ``q <= 1/2``, to a relative error of 6U."""
    if rarer < 1e-300:  # the quotient may overflow
        return -math.log(rarer)
    return math.log1p((1.0 - 2.0 * rarer) / rarer)  # of a difference, a quotient and log1p
