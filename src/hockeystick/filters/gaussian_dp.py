"""A filter by Gaussian differential privacy, whose squares add up."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any, ClassVar, Self, final

from hockeystick.decimals import plain
from hockeystick.errors import PrecisionError, check_count, check_inside, check_positive, public_door
from hockeystick.filters.base import Filter
from hockeystick.laws.base import Pair
from hockeystick.readouts.gaussian_dp import mu_below
from hockeystick.readouts.pure_dp import squared_mu
from hockeystick.state import decode_float, encode_float, field

_WHOLE = 1 << 512  # the budget, in the units that shares of it are counted in
_CLOSE = 1 << 400  # units: of more steps than there can be each is rounded down by less than one


@final
class GaussianDPFilter(Filter[Counter[Fraction]]):
    """Stops an adaptive run before it is no longer mu-GDP: as private as two unit normals at distance mu.

    Steps whose own mu is known are Gaussian noise without sampling, `GaussianDP`, and anything with bounded losses
    (epsilon-DP steps are mu-GDP with ``mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon))``). A subsampled Gaussian has none
    worth having: use `RenyiFilter`.

    Parameters
    ----------
    mu : float
        Above 0.
    adjacency : str
        The neighbouring relation.

    Examples
    --------
    >>> import hockeystick as hs
    >>> budget = hs.filters.GaussianDPFilter(mu=1.0)
    >>> budget.step(hs.Gaussian(2.0), count=3)
    >>> budget.allows(hs.Gaussian(2.5)), budget.allows(hs.Gaussian(1.9))
    (True, False)
    """

    kind: ClassVar[str] = "GaussianDPFilter"

    def __init__(self, mu: float, *, adjacency: str = "add-remove") -> None:
        super().__init__(adjacency)
        self._mu = check_positive("mu", mu)
        self._budget = Fraction(self._mu) ** 2
        self._spent: list[Counter[Fraction]] = [Counter() for _ in self._directions]  # mu^2 of a step: how often
        self._shares = [0 for _ in self._directions]  # their sum, in units

    @classmethod
    @public_door
    def for_budget(cls, epsilon: float, delta: float, *, adjacency: str = "add-remove") -> GaussianDPFilter:
        """The filter with the largest mu that implies (epsilon, delta)-DP, to about eleven digits.

        Parameters
        ----------
        epsilon : float
            Above 0 (nats).
        delta : float
            In (0, 1).
        adjacency : str
            The neighbouring relation.

        Raises
        ------
        PrecisionError
            Where float64 holds no mu that is proved to imply it.

        Guarantee
        ---------
        The closed form of delta, rounded up, is at most ``delta`` for the mu chosen.

        Examples
        --------
        >>> import hockeystick as hs
        >>> budget = hs.filters.GaussianDPFilter.for_budget(epsilon=1.0, delta=1e-5)
        >>> hs.account(hs.GaussianDP(budget.mu)).delta(1.0).upper <= 1e-5
        True
        """
        epsilon, delta = check_positive("epsilon", epsilon), check_inside("delta", delta)
        mu = mu_below(epsilon, delta)
        if mu == 0.0:
            raise PrecisionError(
                f"no mu that float64 holds was proved to imply ({plain(epsilon)}, {plain(delta)})-DP:"
                " give a larger budget"
            )
        return cls(mu, adjacency=adjacency)

    @property
    def mu(self) -> float:
        """The budget."""
        return self._mu

    @property
    def statement(self) -> str:
        """What is proved of everything that has passed."""
        return f"{plain(self._mu)}-GDP under {self._adjacency}, steps chosen adaptively"

    @property
    @public_door
    def remaining(self) -> float:
        """About the mu of a Gaussian step that would just fit."""
        return self._mu * math.sqrt(max(1.0 - max(self._shares) / _WHOLE, 0.0))

    def _content(self) -> dict[str, Any]:
        spent = [
            [[f"{square.numerator}/{square.denominator}", count] for square, count in one.items()]
            for one in self._spent
        ]
        settings = {"mu": encode_float(self._mu), "adjacency": self._adjacency}
        return {"settings": settings, "steps": self._steps, "spent": spent}

    @classmethod
    def _restored(cls, body: dict[str, Any]) -> Self:
        settings = field(body, "settings", dict)
        budget = cls(decode_float(field(settings, "mu", str)), adjacency=field(settings, "adjacency", str))
        spent = [Counter({Fraction(square): count for square, count in one}) for one in field(body, "spent", list)]
        if len(spent) != len(budget._directions):
            raise ValueError(f"it has {len(spent)} directions")
        if any(square < 0 or check_count("count", count) < 1 for one in spent for square, count in one.items()):
            raise ValueError("a squared mu is negative")
        budget._record(spent)
        budget._steps = check_count("steps", field(body, "steps", int), minimum=0)
        return budget

    def _cost(self, parts: tuple[tuple[Pair, int], ...]) -> Counter[Fraction]:
        cost: Counter[Fraction] = Counter()
        for pair, count in parts:
            cost[squared_mu(pair)] += count
        return cost

    def _fits(self, costs: list[Counter[Fraction]]) -> bool:
        return all(self._within(*each) for each in zip(self._spent, self._shares, costs, strict=True))

    def _within(self, spent: Counter[Fraction], share: int, cost: Counter[Fraction]) -> bool:
        """Whether the sum is at most mu^2: in units where that is clear, exactly where it is close."""
        nearly = share + self._share_of(cost)
        if abs(nearly - _WHOLE) > _CLOSE:
            return nearly < _WHOLE
        return sum(((spent + cost)[square] * square for square in spent + cost), Fraction(0)) <= self._budget

    def _record(self, costs: list[Counter[Fraction]]) -> None:
        for spent, cost in zip(self._spent, costs, strict=True):
            spent.update(cost)
        self._shares = [share + self._share_of(cost) for share, cost in zip(self._shares, costs, strict=True)]

    def _share_of(self, cost: Counter[Fraction]) -> int:
        """The part of the budget, in units, every step rounded down."""
        return sum(count * math.floor(square / self._budget * _WHOLE) for square, count in cost.items())
