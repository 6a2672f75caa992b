"""Rules for the transform of Poisson-subsampled Gaussian pairs, both directions, many at once.

In the base loss ``u = m x / s - m^2 / 2`` (m = sensitivity / noise), Q is N(-m^2/2, m^2) and the subsampled loss is
``l = ln r(u)``, ``r(u) = 1 - g + g e^u``. The nodes are equally spaced in u, each an exact float, so the losses carry
only the rounding of ``ln r``; pairs of one rate may share them, and with them their losses. In units
``t = u / m + m / 2`` of the noise, P is the mixture of N(0, 1) and N(m, 1) with weights 1 - g and g, and Q = N(0, 1):
the strip bound of `hockeystick.transforms.strip` applies. The reversed pair has ``M_rev(z) = M(-1 - z)``: losses
change sign and P and Q trade places.

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 3). Cost: a few exponentials
and logarithms a node.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.laws.gaussian_strip import CutOff, Grid, SampledStrip, record_argument
from hockeystick.laws.sampled_loss import sampled_loss_error, sampled_losses
from hockeystick.numerics.columns import Array, Flags, column
from hockeystick.numerics.rounding import U, log_sums
from hockeystick.transforms.rule import Cells, LossRule, Rows, RuleSource, Sketch, Window, few_bits_up
from hockeystick.transforms.strip import Ends, Strip, choose_strip, few_bits, half_widths
from hockeystick.transforms.summand import Order

_WIDEST_STEP = 1.5  # in units of the noise; beyond it nothing is gained
_MOST_NODES = 1 << 20  # in a batch
_FAR = 9.0  # in units of the noise, up to where the bulk of P and Q lies
_BULK_SPACING = 0.75
_BULK = np.arange(-_FAR, _FAR, _BULK_SPACING)[None, :]
_BEYOND = np.arange(40.0)[None, :]
_CUT_WIDTHS = (1.5, 0.8, 0.5, 0.3)  # in units of the noise; the widest that serves is taken
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@final
@dataclass(frozen=True, eq=False)
class SubsampledGaussians(RuleSource):
    """B pairs of one direction.

    Attributes
    ----------
    shift, rate, counts : ndarray, shape (B,)
        m (one rounding off), g, and how often each pair is composed.
    order : {"forward", "reversed"}
        The mixture against the Gaussian, or the reverse.
    is_shared : bool
        Whether all have one rate, and nodes in common.
    """

    shift: Array
    rate: Array
    counts: Array
    order: Order
    is_shared: bool = False

    @property
    def leaves_out(self) -> bool:
        """Where large tilts would reach beyond all losses that matter."""
        return self.order == "forward"

    @property
    def kind(self) -> str | None:
        """Those of one row and one direction."""
        return f"subsampled Gaussian, {self.order}" if self.counts.size == 1 else None

    @classmethod
    def stacked(cls, several: Sequence[SubsampledGaussians]) -> SubsampledGaussians:
        """Sources of one kind as one, row below row."""
        shift, rate, counts = np.concatenate([(one.shift, one.rate, one.counts) for one in several], axis=1)
        return cls(shift, rate, counts, several[0].order)

    def at(self, rows: Rows) -> SubsampledGaussians:
        """Some of the rows."""
        return SubsampledGaussians(self.shift[rows], self.rate[rows], self.counts[rows], self.order)

    @property
    def law(self) -> Hashable:
        """What tells the only row from others of its kind, but for the number of steps."""
        return self.shift.item(), self.rate.item()

    def counted(self, steps: float) -> SubsampledGaussians:
        """The only row, composed so often."""
        return SubsampledGaussians(self.shift, self.rate, np.array([steps]), self.order)

    @property
    def steps(self) -> float:
        """Sum of the counts."""
        return float(self.counts.sum())

    @property
    def scale(self) -> float:
        """The largest shift."""
        return float(self.shift.max())

    def rule(self, window: Window) -> LossRule | None:
        """Rules that serve the window; None where they would be too long."""
        grid = self._grid(window)
        if grid is None:
            return None
        return self._assembled(grid, self._cells(grid, grid.between(window)) if window.cells else None)

    def sketch(self, window: Window) -> Sketch | None:
        """The same without errors: every so many points of its cells."""
        grid = self._grid(window)
        if grid is None:
            return None
        between = grid.between(window)
        cells = self._cells(grid, between)
        log_weight = cells.log_density[:, ::between] + column(np.log(grid.step))
        return Sketch(cells.loss[:, ::between], log_weight, self.counts, cells, grid.cut.dropped)

    def _grid(self, window: Window) -> Grid | None:
        """Where the nodes lie; None where they would be too many."""
        first, size, step, strip, cut = self._layout(window)
        most = float(size.max())
        few = most * size.size <= _MOST_NODES or window.powers.shape[1] > 1
        if not (few and np.less_equal(most, window.longest).all()):
            return None
        rows = slice(1 if self.is_shared else None)
        u = (column(first[rows]) + np.arange(most)[None]) * column(step[rows])
        return Grid(u, step, strip, cut)

    def lengths(self, window: Window) -> Array:
        """The number of nodes that each row needs for the window, shape (B,); infinite where it is not served."""
        size = self._layout(window)[1]
        return np.where(size <= window.longest, size, np.inf)

    def _layout(self, window: Window) -> tuple[Array, Array, Array, Strip, CutOff]:
        """Number of the first node, how many there are, and their distance, shape (B,) each; strips and cut-offs."""
        m = self.shift
        powers = window.powers if self.order == "forward" else 1.0 - window.powers  # of r
        own = np.array([powers.min(axis=0, initial=0.0), powers.max(axis=0, initial=1.0)])
        cut = self._cut(own, window)
        zero = np.zeros(m.size)
        b = half_widths(m, zero)
        turn = self._turn(b, powers[0], np.asarray(window.frequency), cut)
        strip = choose_strip(b, own, window.log_accuracy, spread_p=m, spread_q=zero, growth=cut.growth, log_turn=turn)
        step = few_bits(np.minimum(strip.step, _WIDEST_STEP) * m)
        if self.is_shared:
            step = np.full_like(step, step.min())
        first, size = self._extent(own, step, window, cut)
        return first, size, step, strip, cut

    def _cut(self, own: Array, window: Window) -> CutOff:
        """Cut-offs far above all losses that matter, for the pairs where a large tilt would reach beyond them."""
        m = self.shift
        largest = own[1]
        depth = np.sqrt(-2.0 * np.asarray(window.log_drop))
        natural = largest * m + np.sqrt(-2.0 * np.asarray(window.log_accuracy))
        if self.order == "reversed" or not (m + depth < natural).any():
            none = np.zeros(m.size)
            return CutOff(none + np.inf, none + 1.0, none)
        width, place = np.full_like(m, np.nan), np.full_like(m, np.nan)
        for candidate in _CUT_WIDTHS:
            edge = m + math.sqrt(1.0 + 0.5 * candidate**2) * (1.0 + 1e-9) * depth
            open_still = np.isnan(width) & ((candidate == _CUT_WIDTHS[-1]) | self._is_tamed(largest, edge, candidate))
            width, place = np.where(open_still, candidate, width), np.where(open_still, edge, place)
        useful = place + 4.0 * width < natural  # so that the last node lies beyond the place
        dropped = np.exp(window.log_drop) * (1.0 + 1e-9) + 1e-300
        return CutOff(np.where(useful, place, np.inf), np.where(useful, width, 1.0), np.where(useful, dropped, 0.0))

    def _is_tamed(self, power: Array, place: Array, width: float) -> Flags:
        """Whether the integrand at a power of r stays small beyond a cut-off (a guide)."""
        m, power = self.shift[:, None], power[:, None]
        weight = 2.0 / width**2
        peak = (power * m + weight * place[:, None]) / (1.0 + weight)
        t = place[:, None] + np.maximum(peak + 5.0 - place[:, None], 1.0) * np.linspace(0.1, 1.0, 64)
        loss = self._losses(m * t - 0.5 * m * m)
        beyond = power * loss - 0.5 * t * t - np.square(t - place[:, None]) / width**2
        return np.asarray(beyond.max(axis=1) < -30.0)

    def _turn(self, b: Array, power: Array, frequency: Array, cut: CutOff) -> Array:
        """About ``ln`` of the tilted mean of ``e^{s |arg r|}`` on every strip: what `SampledStrip` will find."""
        m = self.shift
        rate = frequency * m
        everywhere = column(rate) * b
        gentle = rate < 3.0
        if gentle.all():
            return everywhere
        high = cut.highest(np.maximum(power, 1.0) * m) + 30.0
        spacing = np.maximum(high - _FAR, 1e-3) / _BEYOND.size
        t = np.concatenate((_BULK + 0.0 * column(high), _FAR + column(spacing) * _BEYOND), axis=1)
        base = column(m) * t - 0.5 * column(m * m)
        loss = self._losses(base)
        logs = column(power) * loss - 0.5 * t * t
        logs[:, _BULK.size :] += column(np.log(spacing / _BULK_SPACING))
        if cut.is_used:
            logs = logs + cut.log_factor(t, m[:, None])[0]
        logs = logs - column(log_sums(logs))
        posterior = column(self.rate) * np.exp(base - loss)
        argument = record_argument(posterior[:, None], (column(m) * b)[:, :, None])
        turned = column(column(frequency)) * argument
        return np.where(gentle[:, None], everywhere, log_sums(logs[:, None] + turned))

    def _extent(self, own: Array, step: Array, window: Window, cut: CutOff) -> tuple[Array, Array]:
        """First of the equally spaced base losses that cover the integrand at every power of r, and their number.

        The number has few bits, so that many rules have as many nodes as others and share calls.
        """
        m, g = self.shift, self.rate
        reach = np.sqrt(-2.0 * np.asarray(window.log_accuracy)) + 0.5
        # the integrand at power e is largest at t = e m q(u), q the posterior weight of the record: in [0, e m] for e
        # >= 0, in [e m g, 0] for e < 0
        low = own[0] * m * g - reach
        high = cut.highest(own[1] * m) + reach
        first = np.floor((m * low - 0.5 * m * m) / step)
        last = np.ceil((m * high - 0.5 * m * m) / step)
        if self.is_shared:
            first, last = np.full_like(first, first.min()), np.full_like(last, last.max())
        size = last - first + 1.0
        alone = size.size > 1 and own.shape[1] == 1  # the parts of one run share a call whatever others need
        return first, size if alone else few_bits_up(size)

    def _losses(self, u: Array) -> Array:
        """``ln(1 - g + g e^u)``."""
        return sampled_losses(u, column(self.rate))

    def _log_weight(self, grid: Grid) -> tuple[Array, Array]:
        """``ln`` of step times the density of Q at u, cut off, and bounds on its error."""
        m = column(self.shift)
        t = grid.u / m + 0.5 * m
        constant = column(np.log(grid.step / self.shift)) - _LOG_SQRT_2PI
        value = constant - 0.5 * t * t
        error = U * (12.0 * t * t + 8.0 * np.abs(t) * m + 8.0 * (2.0 + np.abs(constant)) + 2.0 * np.abs(value))
        if grid.cut.is_used:
            factor, factor_error = grid.cut.log_factor(t, m)
            value = value + factor
            error = error + factor_error + np.where(grid.cut.used[:, None], U * np.abs(value), 0.0)
        return value, error

    def _assembled(self, grid: Grid, cells: Cells | None) -> LossRule:
        m, u, cut = self.shift, grid.u, grid.cut
        forward = self.order == "forward"
        rate = column(self.rate[: len(u)])
        value = sampled_losses(u, rate)
        value_error = sampled_loss_error(value, u, rate)
        log_weight, weight_error = self._log_weight(grid)
        log_posterior = np.log(rate) + u - value  # ln(dl / du), increasing in u
        zero, posterior = np.zeros(m.size), np.broadcast_to(np.exp(log_posterior), log_weight.shape)
        at_low, at_high = m * posterior[:, 0] * (1.0 + 1e-9), m * posterior[:, -1] * (1.0 - 1e-9)
        mixture = Ends(lowest=zero, at_low=np.minimum(at_low, m), at_high=np.minimum(at_high, m), highest=m)
        single = Ends(zero, zero, zero, zero)
        if not forward:
            log_weight, weight_error = log_weight + value, weight_error + value_error + U * np.abs(log_weight + value)
            value = -value
        low, high = u[:, 0] / m + 0.5 * m, u[:, -1] / m + 0.5 * m
        quadrature = SampledStrip(
            step=grid.step / m,
            low=low,
            high=high,
            strip=grid.strip,
            p=mixture if forward else single,
            q=single if forward else mixture,
            loss=value,
            log_weight=log_weight,
            growth=cut.growth,
            fall=cut.fall(high),
            shift=m,
            posterior=posterior,
            is_reversed=not forward,
        )
        return LossRule(
            value,
            value_error,
            log_weight,
            weight_error,
            zero,
            zero,
            self.counts,
            quadrature=quadrature,
            cells=cells,
            dropped=cut.dropped,
        )

    def _cells(self, grid: Grid, between: int) -> Cells:
        """The density of the loss, ``between`` cells to a step."""
        m, u, cut = self.shift, grid.u, grid.cut
        length = grid.step / between
        fine = column(u[:, 0]) + np.arange((u.shape[1] - 1) * between + 1)[None] * column(length)
        loss = self._losses(fine)
        t = fine / column(m) + 0.5 * column(m)
        log_density = -0.5 * t * t - column(np.log(m) + _LOG_SQRT_2PI)
        if cut.is_used:
            log_density = log_density + cut.log_factor(t, m[:, None])[0]  # log-concave: it bends down only
        log_slope = column(np.log(self.rate)) + fine - loss  # ln(dl / du), increasing in u
        cells = Cells(
            loss=loss,
            log_density=log_density,
            log_slope=log_slope[:, 1:],
            curvature=-1.0 / (m * m),
            curvature_p=np.full(m.size, 0.25),  # ln r bends by at most a quarter
            curvature_q=np.zeros(m.size),
            square=length * length,
        )
        return cells if self.order == "forward" else cells.reversed()
