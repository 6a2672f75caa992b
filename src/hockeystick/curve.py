"""The privacy curve: what an accounted composition answers.

The curve is the pointwise maximum over the directions of the neighbouring relation, taken after composing. What can be
read off it beyond epsilon and delta is in `tradeoff` and `summary`, imported when asked for.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick import notebook
from hockeystick.accountants.attained import Sources
from hockeystick.accountants.base import Accountant, DirectedCurve
from hockeystick.accountants.certified import Certified
from hockeystick.bound import Bound, Estimate
from hockeystick.composition import Composition, directions
from hockeystick.decimals import plain
from hockeystick.errors import check_delta, check_epsilon, public_door
from hockeystick.progress import Progress
from hockeystick.together import asked_together, smaller, worst

if TYPE_CHECKING:
    from hockeystick.engines.together import Quantity
    from hockeystick.readouts.trade_off import TradeOff

Array = NDArray[np.float64]

_THREADS: bool = sys.platform != "emscripten"  # Pyodide starts none
_FEW, _SHOWN = 10, (1e-5, 1e-6, 1e-9)  # distinct steps up to which a notebook shows epsilon, and at which deltas
_MANY = 100  # distinct steps from which the directions are answered at once


@final
class PrivacyCurve:
    """Epsilon and delta of a composition, under one neighbouring relation, by one accountant.

    Made by `hockeystick.account`. It may be pickled, copied, and asked from several threads at once: an answer depends
    on the question alone.

    Attributes
    ----------
    composition : Composition
        What was accounted.
    adjacency : str
        The neighbouring relation.
    accountant : Accountant
        The method, with its settings.
    directed : mapping of str to DirectedCurve
        The curve of each direction.
    """

    @public_door
    def __init__(self, composition: Composition, adjacency: str, accountant: Accountant) -> None:
        self.composition = composition
        self.adjacency = adjacency
        self.accountant = accountant
        shared: dict[object, DirectedCurve] = {}  # directions with the same pairs have one curve, which is asked once
        directed: dict[str, DirectedCurve] = {}
        for direction in directions(adjacency):
            sources = Sources.of(composition, direction)
            known = shared.get(sources)
            if known is None:
                known = shared[sources] = sources.curve(accountant)
            directed[direction] = known
        self.directed: Mapping[str, DirectedCurve] = directed

    def __reduce__(self) -> tuple[object, ...]:
        # what the directions' curves hold is for speed alone: the same three give the same answers
        return PrivacyCurve, (self.composition, self.adjacency, self.accountant)

    def __repr__(self) -> str:
        return (
            f"PrivacyCurve({self.composition.total_steps} steps, adjacency={self.adjacency!r}, "
            f"accountant={self.accountant!r})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the run, and epsilon at a few deltas where that is quick."""
        quick = isinstance(self.accountant, Certified) and len(self.composition.steps) <= _FEW
        answers = [self.epsilon(delta) for delta in _SHOWN] if quick else []
        rows = [
            (f"epsilon at delta {plain(d)}", notebook.bracket(*a.sides)) for d, a in zip(_SHOWN, answers, strict=False)
        ]
        steps = [(notebook.times(count), repr(step)) for step, count in self.composition.steps]
        rows += [("relation", self.adjacency), ("accountant", repr(self.accountant)), *notebook.most(steps)]
        return notebook.table("Privacy curve", rows)

    def to_pandas(self, *, epsilon: ArrayLike | None = None, delta: ArrayLike | None = None) -> Any:
        """`to_table` as a data frame; needs pandas."""
        return notebook.frame(self.to_table(epsilon=epsilon, delta=delta))

    def epsilon(self, delta: ArrayLike) -> Bound | Estimate:
        """The smallest epsilon with ``delta(epsilon) <= delta`` (nats).

        Parameters
        ----------
        delta : float or array_like
            In [0, 1].

        Returns
        -------
        Bound or Estimate
            Of the shape of ``delta``; a ``Bound`` from a certified accountant.

        Examples
        --------
        >>> import hockeystick as hs
        >>> curve = hs.account(hs.Gaussian(noise_multiplier=2.0))
        >>> f"{curve.epsilon(delta=1e-5):.4f}"
        '[1.9931, 1.9931]'
        """
        return self._asked(check_delta(delta), "epsilon")

    def delta(self, epsilon: ArrayLike) -> Bound | Estimate:
        """delta at the given epsilon.

        Parameters
        ----------
        epsilon : float or array_like
            At least 0, infinity included (nats).

        Returns
        -------
        Bound or Estimate
            Of the shape of ``epsilon``, within [0, 1]. The sides fall with epsilon to within the bracket's width (see
            `Bound`).

        Examples
        --------
        >>> import hockeystick as hs
        >>> hs.account(hs.Gaussian(noise_multiplier=1.0)).delta(epsilon=1.0).contains(0.12693673750664397)
        True
        """
        return self._asked(check_epsilon(epsilon), "delta")

    def trade_off(
        self, false_positive_rate: ArrayLike, *, direction: str = "worst", tolerance: float = 1e-3
    ) -> TradeOff:
        """The trade-off function: the smallest false-negative rate of any attack with these false-positive rates.

        See `hockeystick.readouts.trade_off.trade_off` for the arguments.

        Examples
        --------
        >>> import hockeystick as hs
        >>> curve = hs.account(hs.Gaussian(noise_multiplier=1.0))
        >>> curve.trade_off([0.05, 0.5]).false_negative_rate.upper.round(3).tolist()
        [0.741, 0.159]
        """
        from hockeystick.readouts.trade_off import trade_off

        return trade_off(self, false_positive_rate, direction=direction, tolerance=tolerance)

    def true_positive_rate(self, false_positive_rate: ArrayLike, *, direction: str = "worst") -> Bound | Estimate:
        """The largest true-positive rate of any attack with these false-positive rates (see `trade_off`).

        Examples
        --------
        >>> import hockeystick as hs
        >>> curve = hs.account(hs.Gaussian(noise_multiplier=1.0))
        >>> f"{float(curve.true_positive_rate(0.001)):.3f}"
        '0.018'
        """
        from hockeystick.readouts.trade_off import trade_off

        return trade_off(self, false_positive_rate, direction=direction).true_positive_rate

    def advantage(self) -> Bound | Estimate:
        """The largest difference of true-positive and false-positive rate of any attack: delta(0), the total variation.

        Examples
        --------
        >>> import hockeystick as hs
        >>> f"{float(hs.account(hs.Gaussian(noise_multiplier=1.0)).advantage()):.3f}"
        '0.383'
        """
        return self.delta(0.0)

    def attack_success(self, baseline: ArrayLike) -> Bound | Estimate:
        """The largest probability with which a secret is guessed that would be guessed with `baseline` otherwise.

        The secret may be an attribute of a person's record or the whole record, and "guessed" may mean "nearly": the
        attack is a test whose false-positive rate is the baseline, so this is the true-positive rate there
        (`docs/concepts/risk.md`).

        Parameters
        ----------
        baseline : float or array_like
            The best guesser's probability of success without the record in the data, in [0, 1].

        Examples
        --------
        >>> import hockeystick as hs
        >>> f"{float(hs.account(hs.Gaussian(noise_multiplier=1.0)).attack_success(0.1)):.3f}"
        '0.389'
        """
        return self.true_positive_rate(baseline)

    def bayes_risk(self, prior: float) -> Bound | Estimate:
        """The smallest probability of error of anyone who guesses whether a record was in the data, given a prior.

        See `hockeystick.readouts.risk.bayes_risk`; ``lower`` is the guarantee.

        Examples
        --------
        >>> import hockeystick as hs
        >>> f"{float(hs.account(hs.Gaussian(noise_multiplier=1.0)).bayes_risk(0.5).lower):.4f}"
        '0.3085'
        """
        from hockeystick.readouts.risk import bayes_risk

        return bayes_risk(self, prior)

    def group_epsilon(self, delta: float, *, size: int) -> Bound:
        """Bounds on epsilon for a group of up to ``size`` records, from this curve of one record, for any mechanism.

        See `hockeystick.readouts.group.group_epsilon`. ``account(run, group_size=)`` is tighter where it answers.

        Examples
        --------
        >>> import hockeystick as hs
        >>> run = hs.Gaussian(noise_multiplier=50.0) * 100
        >>> tight = float(hs.account(run, group_size=5).epsilon(1e-6))
        >>> f"{tight:.2f} {float(hs.account(run).group_epsilon(1e-6, size=5)):.2f}"
        '4.89 5.09'
        """
        from hockeystick.readouts.group import group_epsilon

        return group_epsilon(self, delta, size=size)

    def mu(self, *, floor: float = 0.0, tolerance: float = 1e-3) -> Bound | Estimate:
        """The smallest mu for which the run is mu-Gaussian-DP, proved over all epsilons.

        See `hockeystick.readouts.summary.smallest_mu`; a run with sampling needs a ``floor``, such as 1e-10.

        Examples
        --------
        >>> import hockeystick as hs
        >>> f"{float(hs.account(hs.Gaussian(noise_multiplier=2.0) * 4).mu()):.3f}"
        '1.000'
        """
        from hockeystick.readouts.summary import smallest_mu

        return smallest_mu(self, floor=floor, tolerance=tolerance)

    def regret(self, mu: float, *, tolerance: float = 1e-2) -> Bound | Estimate:
        """What the summary "mu-GDP" loses, between 0 and 1/2 (see `hockeystick.readouts.summary.regret`).

        Examples
        --------
        >>> import hockeystick as hs
        >>> float(hs.account(hs.Gaussian(noise_multiplier=2.0) * 4).regret(1.0)) < 1e-4
        True
        """
        from hockeystick.readouts.summary import regret

        return regret(self, mu, tolerance=tolerance)

    def to_table(self, *, epsilon: ArrayLike | None = None, delta: ArrayLike | None = None) -> dict[str, list[float]]:
        """Columns by name, as a data frame takes them: delta at given epsilons, or epsilon at given deltas.

        Examples
        --------
        >>> import hockeystick as hs
        >>> table = hs.account(hs.Gaussian(noise_multiplier=1.0)).to_table(epsilon=[0.0, 1.0])
        >>> list(table), len(table["delta_upper"])
        (['epsilon', 'delta_lower', 'delta_upper'], 2)
        """
        from hockeystick.readouts.trade_off import columns

        if (epsilon is None) == (delta is None):
            raise TypeError("to_table takes either epsilon or delta: the values at which the other is wanted")
        if epsilon is not None:
            at = check_epsilon(epsilon)
            return {"epsilon": [float(value) for value in at.ravel()]} | columns("delta", self.delta(at))
        at = check_delta(delta if delta is not None else 0.0)
        return {"delta": [float(value) for value in at.ravel()]} | columns("epsilon", self.epsilon(at))

    def _asked(self, values: Array, quantity: Quantity) -> Bound | Estimate:
        with Progress("accounting"):
            if values.ndim == 0:
                return self.one(float(values), quantity)
            return asked_together([self], np.zeros(values.shape, dtype=np.intp), values, quantity)

    def one(self, value: float, quantity: Quantity) -> Bound | Estimate:
        """``delta(value)`` or ``epsilon(value)``, the value checked already."""
        decides: Bound | None = None
        other: DirectedCurve | None = None
        answers: dict[int, Bound | Estimate] = {}
        for curve in {id(one): one for one in self.directed.values()}.values():
            if decides is not None and other is not None and stays_below(curve, other, decides, value, quantity):
                answers[id(curve)] = smaller(decides)
                continue
            answer = curve.delta(value) if quantity == "delta" else curve.epsilon(value)
            answers[id(curve)] = answer
            decides, other = answer if isinstance(answer, Bound) else None, curve
        return worst({name: answers[id(curve)] for name, curve in self.directed.items()}, self.composition.notes)

    def by_direction(self, ask: Callable[[DirectedCurve], Bound | Estimate]) -> dict[str, Bound | Estimate]:
        """What the curve of each direction answers."""
        curves = {id(curve): curve for curve in self.directed.values()}
        if _THREADS and self.accountant.concurrent and len(curves) > 1 and len(self.composition.steps) >= _MANY:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(len(curves)) as pool:
                answers = dict(zip(curves, pool.map(ask, curves.values()), strict=True))
        else:
            answers = {key: ask(curve) for key, curve in curves.items()}
        return {direction: answers[id(curve)] for direction, curve in self.directed.items()}


def stays_below(curve: DirectedCurve, other: DirectedCurve, decides: Bound, value: float, quantity: Quantity) -> bool:
    """Whether a direction is proved to stay below the lower side of another's answer: it changes neither side."""
    lower = float(decides.lower)
    if not 0.0 < lower < float(decides.upper) or math.isinf(value):  # at infinite epsilon an answer is at hand
        return False
    epsilon, delta = (value, lower) if quantity == "delta" else (lower, value)
    return curve.is_below_beside(other, epsilon=epsilon, delta=delta, quantity=quantity)
