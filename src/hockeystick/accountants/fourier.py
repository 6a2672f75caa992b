"""The Fourier accountant (002, Algorithm 1), with strict bounds on all of its errors.

Every privacy loss is rounded to a grid of spacing h, up for the upper bound and down for the lower (002's right and
left grid approximation, privacy buckets), and the grid distributions are convolved by FFT modulo the window [-L, L).
The masses at infinity are kept.

Error bounds, k the number of steps, X the composed loss:

- truncation and periodisation (002, Theorems 1 and 3): the mass of X beyond either end of the window, by Chernoff;
- grid (002, Theorem 2): ``delta_up(eps) - delta(eps) <= k h P(X_up > eps)``, the probability by Chernoff;
- rounding of the transforms and sums.

Guarantee: lower and upper are certified, rounding included. All errors are absolute: where delta is below about 1e-12
the upper bound is an error bound and no more; the certified accountant has relative errors and needs the square root
of the grid points. Cost: two FFTs of length 2 L / h a distinct pair; then one inner product an answer (002, Lemma 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts, check_length
from hockeystick.bound import Bound, from_sides
from hockeystick.composition import Composition, Step, directions
from hockeystick.engines.lattice.buckets import bucket_cells, buckets_down, buckets_up
from hockeystick.engines.lattice.fourier import Evaluation, PeriodicComposition
from hockeystick.engines.lattice.grid import Grid
from hockeystick.engines.lattice.plan import saddle_at_delta
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.errors import PrecisionError, check_choice, check_fields, check_finite, check_positive, public_door
from hockeystick.numerics.fft import even_smooth_length, fft_error
from hockeystick.numerics.one_sided_root import crossings
from hockeystick.numerics.rounding import U, exp_up, up
from hockeystick.transforms.cumulants import Cumulants

_METHOD = "Fourier accountant"
_LOG_BEYOND = -60.0  # ln of the composed mass that a grid may leave beyond its ends
_LARGEST_WINDOW = 1 << 25  # points; about 40 bytes each
_STRIDE = 1.2  # between the spacings that are tried
_TILTS = np.exp(np.linspace(math.log(1e-3), math.log(1e4), 120))


@final
@dataclass(frozen=True)
class Fourier(Accountant):
    """002's Fourier accountant: buckets on a grid, composed by FFT in a fixed window.

    Parameters
    ----------
    spacing : float
        Distance of neighbouring grid points (nats).
    half_width : float
        L: losses are kept apart in [-L, L), rounded up to a number of points that transforms fast (nats).
    evaluation : {"plancherel", "inverse transform"}
        How an answer is summed: in the frequency domain (002, Lemma 5), or over the window after one inverse transform.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> curve = Fourier(spacing=1e-4, half_width=8.0).directed(((GaussianPair(2.0), 4),))
    >>> bound = curve.delta(1.0)  # four steps at noise 2 are one at noise 1
    >>> bound.contains(0.12693673750664397), bound.width < 1e-3
    (True, True)
    """

    spacing: float
    half_width: float
    evaluation: Evaluation = field(default="plancherel", kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self, spacing=check_length, half_width=check_length)
        check_choice("evaluation", self.evaluation, ("plancherel", "inverse transform"))
        if self.points > _LARGEST_WINDOW:
            raise ValueError(
                f"half_width {self.half_width!r} and spacing {self.spacing!r} make {self.points:g} grid points; at most"
                f" {_LARGEST_WINDOW} are allowed: use a larger spacing, or accountants.Certified"
            )

    @property
    def points(self) -> int:
        """n, the number of grid points: even, at least 16, without prime factors above 5."""
        return even_smooth_length(2 * math.ceil(self.half_width / self.spacing * (1.0 - 1e-12)))

    @classmethod
    @public_door
    def for_error(
        cls, composition: Composition | Step, epsilon: float, *, error: float, adjacency: str = "add-remove"
    ) -> Fourier:
        """The accountant whose bracket of delta(epsilon) is at most ``error`` wide (002, Lemma 4 and Remark 6).

        L comes from the moment generating functions of the privacy losses by Chernoff, then h from L and Theorem 2,
        before anything is composed.

        Parameters
        ----------
        composition : Composition or Step
            What will be accounted.
        epsilon : float
            Where (nats).
        error : float
            Largest width of the bracket of delta, above 0.
        adjacency : str
            The neighbouring relation.

        Raises
        ------
        PrecisionError
            Where that takes too many grid points, or more accuracy than the transforms have.

        Examples
        --------
        >>> import hockeystick as hs
        >>> run = hs.Gaussian(noise_multiplier=2.0).poisson(rate=0.1) * 20
        >>> fourier = Fourier.for_error(run, 0.5, error=1e-3)
        >>> hs.account(run, accountant=fourier).delta(epsilon=0.5).width <= 1e-3
        True
        """
        epsilon, error = check_finite("epsilon", epsilon), min(check_positive("error", error), 1.0)  # no delta is more
        run, points = composition * 1, 16  # the fewest
        if (rounding := 8.0 * run.total_steps * fft_error(points)) <= 0.1 * error:
            plans = [_Plan.of(run.pairs(direction), epsilon, error) for direction in directions(adjacency)]
            spacing = min(plan.spacing for plan in plans)
            half_width = max(plan.half_width for plan in plans)
            points = even_smooth_length(2 * math.ceil(half_width / spacing))
            rounding = _rounding(run.total_steps, min(points, _LARGEST_WINDOW), half_width)
        if points > _LARGEST_WINDOW or rounding > 0.1 * error:
            why = f"{points} grid points" if points > _LARGEST_WINDOW else f"rounding errors below {rounding:.1e}"
            raise PrecisionError(
                f"a delta bracket of width {error:g} at epsilon {epsilon:g} over {run.total_steps} steps takes {why}:"
                " ask for a larger error, or use accountants.Certified, whose errors are relative"
            )
        return cls(spacing, half_width)

    def directed(self, parts: Parts) -> DirectedCurve:
        return _FourierCurve(self, parts)


def _rounding(steps: int, points: int, half_width: float) -> float:
    """About what rounding may add: of the transforms, and of a sum over all frequencies, most in a narrow window."""
    narrow = 1.0 / half_width  # the kernel's series are as large at frequency 0, and all but cancel
    return 8.0 * steps * fft_error(points) * (1.0 + narrow) + U * points * (3.0 + 2.0 * math.log(points) + narrow)


@final
@dataclass(frozen=True)
class _Plan:
    """A priori window and spacing."""

    half_width: float
    spacing: float

    @classmethod
    def of(cls, parts: Parts, epsilon: float, error: float) -> _Plan:
        """Most of the error goes to the grids, which lie k h apart, the rest to the window."""
        steps = sum(count for _, count in parts)
        cumulants = Cumulants(parts, -400.0)
        log_moments = {sign: np.array([cumulants.log_moment(sign * float(t)) for t in _TILTS]) for sign in (1, -1)}

        def mass_above(edge: float) -> float:
            return math.exp(min(float((log_moments[1] - _TILTS * edge).min()), 0.0))

        spacing = 0.6 * error / steps
        while (
            spacing < 1.0 and _STRIDE * steps * spacing * mass_above(epsilon - _STRIDE * steps * spacing) <= 0.6 * error
        ):
            spacing *= _STRIDE
        reach = [float(((log_moments[sign] - math.log(error / 16.0)) / _TILTS).min()) for sign in (1, -1)]
        return cls(max(*reach, epsilon + spacing, 16.0 * spacing) + 2.0 * steps * spacing, spacing)


@final
class _FourierCurve(DirectedCurve):
    """One direction: two periodic compositions, made when first asked."""

    def __init__(self, settings: Fourier, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        self._steps = sum(count for _, count in parts)

    @cached_property
    def _compositions(self) -> tuple[PeriodicComposition, PeriodicComposition, float]:
        """Rounded up, rounded down, and a bound on what the first has too much: beyond its ends, and by rounding."""
        h = self._settings.spacing
        ups: list[tuple[LatticePLD, int]] = []
        downs: list[tuple[LatticePLD, int]] = []
        beyond, excess = 0.0, 0.0
        for pair, count in self._parts:
            log_beyond = _LOG_BEYOND - math.log(self._steps)
            grid = Grid.covering(*pair.loss_range(log_beyond, log_beyond), h)
            cells = bucket_cells(pair, grid, "upper")
            ups.append((buckets_up(cells), count))
            downs.append((buckets_down(bucket_cells(pair, grid, "lower") if pair.is_discrete else cells), count))
            ends = (cells.cells.log_p + cells.cells.error_p)[[0, -1]]
            beyond += count * sum(exp_up(min(end, 0.0)) for end in ends.tolist())
            # every mass is rounded up, the one at infinity too: products of the sums exceed 1 by that, all together
            excess += count * ups[-1][0].excess
        points = self._settings.points
        too_much = up(beyond + math.expm1(min(excess, 700.0)), 8.0 * U * (len(self._parts) + 64.0))
        return PeriodicComposition(ups, points), PeriodicComposition(downs, points), too_much

    def _grid_error(self, epsilon: float) -> float:
        """Theorem 2: how far rounding up may raise delta(epsilon)."""
        above, _, too_much = self._compositions
        moved = self._steps * (self._settings.spacing + 2.0 * above.slack / self._steps) * (1.0 + 1e-9)
        mass = exp_up(above.log_mass_beyond(epsilon))
        return min(up(moved * mass + too_much, 8.0 * U), 1.0)

    def _upper(self, epsilon: float) -> float:
        """Upper bound on delta(epsilon)."""
        above = self._compositions[0]
        return above.delta(epsilon - above.slack, self._settings.evaluation)[1]

    def _lower(self, epsilon: float) -> float:
        """Lower bound on delta(epsilon), from the losses rounded down."""
        below = self._compositions[1]
        return below.delta(epsilon + below.slack, self._settings.evaluation)[0]

    def delta(self, epsilon: float) -> Bound:
        above, below, _ = self._compositions
        if math.isinf(epsilon):
            return Bound(below.infinity[0], above.infinity[1], _METHOD)
        grid = self._grid_error(epsilon - above.slack)
        by_grid, upper = above.delta(epsilon - above.slack, self._settings.evaluation)
        lower = max(self._lower(epsilon), by_grid - grid)
        return from_sides(lower, upper, _METHOD, errors={**above.budget(), "grid": grid})

    def epsilon(self, delta: float) -> Bound:
        if delta >= 1.0:
            return Bound(0.0, 0.0, _METHOD)
        if delta == 0.0:
            note = "the errors of this accountant are absolute: nothing is known where delta is 0"
            return Bound(0.0, math.inf, _METHOD, notes=(note,))
        _, saddle = saddle_at_delta(self._parts, max(delta, 1e-300))
        guess, step = max(saddle.epsilon, 0.0), 1e-2 * self._settings.spacing
        ends = crossings(self._lower, self._upper, delta, guess=guess, slope=saddle.theta, step=step)
        return from_sides(*ends, _METHOD)
