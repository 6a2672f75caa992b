"""Accounting: from a composition to its privacy curve, with the method chosen for the caller."""

from __future__ import annotations

from typing import Literal

from hockeystick.accountants.base import Accountant, check_accountant
from hockeystick.accountants.certified import Certified
from hockeystick.composition import Composition, Step
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import check_count, public_door


@public_door
def account(
    run: Step | Composition,
    adjacency: str = "add-remove",
    *,
    tolerance: float = 1e-3,
    accountant: Accountant | Literal["automatic"] | None = None,
    group_size: int = 1,
) -> PrivacyCurve:
    """The privacy curve of a run.

    Parameters
    ----------
    run : Step or Composition
        What is released: ``step * count``, sums of such, or one step.
    adjacency : {"add-remove", "add", "remove", "substitute", "zero-out"}
        Which datasets count as neighbours.
    tolerance : float
        Width of the epsilon bracket asked for (nats); where delta is asked for, its relative width.
    accountant : Accountant, optional
        A method of `hockeystick.accountants`; by default, and for ``"automatic"``, the certified one.
    group_size : int
        How many records neighbouring datasets differ by, at most: the size of a household, say. One by default.

    Returns
    -------
    PrivacyCurve
        Its ``epsilon(delta=)`` and ``delta(epsilon=)`` return a ``Bound`` (certified) or an ``Estimate``.

    Raises
    ------
    UnknownPairError
        Where no dominating pair is known for a step under this relation, or for a group of that size.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.Gaussian(noise_multiplier=1.0).poisson(rate=0.01)
    >>> bound = hs.account(step * 2000).epsilon(delta=1e-5)
    >>> bound.certified, bound.width <= 1e-3, bound.contains(2.583841181692741)
    (True, True, True)
    """
    if not isinstance(run, Step | Composition):
        raise TypeError(
            f"run must be a step or a composition, such as Gaussian(1.0).poisson(0.01) * 2000, got {run!r}"
            f" of type {type(run).__name__}"
            + ("; compose(run) makes a composition of a list" if isinstance(run, list | tuple) else "")
        )
    size, whole = check_count("group_size", group_size), run if isinstance(run, Composition) else run * 1
    return PrivacyCurve(
        whole if size == 1 else whole.for_group(size),
        adjacency,
        check_accountant(accountant, Certified(tolerance)),
    )
