"""``K(theta) = ln M(theta)`` of a batch of rules with its error, and the rules tilted by theta.

With ``a = 1 + theta`` the moment is one plus terms of second order in the loss, all of one sign (a outside [0, 1]):

    M_f(theta) - 1 = sum_j q_j psi_a(l_j) + (a - 1) missing_q - a missing_p,   psi_a(l) = e^{al} - 1 - a (e^l - 1),
    M_f K_f'       = sum_j q_j (l_j (e^{a l_j} - 1) - (e^{l_j} - 1 - l_j)) + missing_q - missing_p,

because ``sum q_j = 1 - missing_q`` and ``sum q_j e^{l_j} = 1 - missing_p``. So the error of K is relative to K, not to
1, and a billion steps cost no accuracy. Where e^{al} leaves the range of float64 a scaled sum of exponentials is used.

Guarantee: every ``error`` bounds the distance from the transform meant, quadrature and rounding included
(`docs/derivations/contour.md`, sections 3 and 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.numerics.columns import Columns, across, column
from hockeystick.numerics.residuals import SWITCH
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.rule import OVERFLOW, Array, Grown, LossRule, Numbers, Rows, additions, leaning, node_sum

_SERIES = 12  # terms of psi; the first one left out is below 26 (1/4)^12 / 14! < u / 6 of the first
_FACTORIALS = np.array([float(math.factorial(k)) for k in range(2, _SERIES + 2)])
_SLACK = 1.02  # covers products of first-order error terms, each at most `_FIRST_ORDER`
_FIRST_ORDER = 1e-2  # up to which e^x - 1 is taken for x: losses of 1e13 nats and more have larger errors
_IDENTITIES = np.array([0.0, 1.0])  # exponents of known moments
_MOSTLY = 0.5  # of a mass that is missing: where more is, the finite sum is as accurate as what is known of it
_EXACT = 64.0 * U  # of the largest loss, that an error may be without another look
_UNDERFLOW = 1e-290  # absolute, what weights below the normal range can lose


@final
@dataclass(frozen=True, eq=False)
class LogMoments:
    """``ln M_f`` (nats) of each rule at each exponent, shape (K, B).

    Attributes
    ----------
    value, error : ndarray
        The logarithm of the finite sum, and a bound on its error.
    quadrature : ndarray
        Bound on the distance of ``ln M_f`` from ``K = ln M``.
    identity_error : ndarray, shape (B,)
        Bound on ``|sum q_j - (1 - missing_q)|`` and on ``|sum q_j e^{l_j} - (1 - missing_p)|``.
    grown : Grown or None
        `LossRule.grown_by` the first exponent, where that is accurate relative to K.
    """

    value: Array
    error: Array
    quadrature: Array
    identity_error: Array
    grown: Grown | None = None

    @property
    def total_error(self) -> Array:
        """Bound on the distance of ``value`` from K."""
        return self.error + self.quadrature

    def at(self, rows: Rows) -> LogMoments:
        """Those of some of the rules."""
        value, error, quadrature = (one[:, rows] for one in (self.value, self.error, self.quadrature))
        return LogMoments(value, error, quadrature, self.identity_error[rows])


def log_moments(rule: LossRule, exponents: Array, *, fine: int | None = None) -> LogMoments:
    """``K(a - 1)`` of every rule at exponents a, shape (K,), or (K, R) for those of R runs.

    Only the first ``fine``, all above 1, are accurate relative to K, by default all; Chernoff's bounds need no more of
    the others than a sum of exponentials tells.
    """
    identities = _IDENTITIES.reshape((-1,) + (1,) * (exponents.ndim - 1))
    every = np.concatenate((identities + np.zeros(exponents.shape[1:]), exponents))
    quadrature = rule.quadrature.error(every)
    identity_error = quadrature[: _IDENTITIES.size].max(axis=0) + rule.dropped
    quadrature = quadrature[_IDENTITIES.size :]
    each = exponents.reshape(len(exponents), -1)
    split = len(each) if fine is None else fine
    found, grown = [], None
    if split:
        value, error, grown = _accurate(rule, each[:split], identity_error)
        found.append((value, error))
    if split < len(each):
        found.append(_plain(rule, each[split:]))
    value, error = found[0] if len(found) == 1 else (np.concatenate(both) for both in zip(*found, strict=True))
    doubt = np.where(quadrature < 0.5, -np.log1p(-np.minimum(quadrature, 0.5)) * _SLACK, np.inf)
    return LogMoments(value, error * _SLACK, doubt, identity_error, grown)


def _accurate(rule: LossRule, exponents: Array, identity_error: Array) -> tuple[Array, Array, Grown]:
    """``ln M_f``, a bound on its error, relative to itself where nothing overflows, and what it is made of; (K, R)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # where it overflows it is not used
        own = exponents[0] if len(exponents) == 1 else exponents
        grown = rule.grown_by(column(own))
        found = _above_one(rule, own, grown, identity_error)
        above, above_error = (one.reshape(len(exponents), -1) for one in found)
        value = np.log1p(above)
        error = above_error / (1.0 + above - above_error) + ELEMENTARY * np.abs(value)
    largest = (rule.log_weight + column(own) * rule.loss).max(axis=-1)
    told = rule.largest_doubt(exponents) <= _FIRST_ORDER
    first = grown if own is not exponents else Grown(grown.value[0], grown.error[0])
    safe = (above_error < 0.5 * (1.0 + above)) & (largest < OVERFLOW) & told
    if safe.all():
        return value, error, first
    scaled, scaled_error = _scaled(rule, exponents)
    return np.where(safe, value, scaled), np.where(safe, error, scaled_error), first


def _above_one(rule: LossRule, exponents: Array, grown: Grown, identity_error: Array) -> tuple[Array, Array]:
    """``M_f - 1`` and a bound on its error, shape (K, B), at exponents of shape (K, R); those of nodes in range."""
    a = column(exponents)
    loss = rule.loss
    # q psi = p (e^{(a-1) l} - 1) - (a - 1) (p - q) = q (e^{al} - 1) - a (p - q): the one of the smaller coefficient
    lean = leaning(a)
    coefficient = a - lean
    small = (np.abs(a * loss) <= SWITCH) & (np.abs(loss) <= SWITCH)
    term = np.where(
        small,
        rule.weight * _small_psi(a, np.minimum(np.maximum(loss, -SWITCH), SWITCH)),
        grown.value - coefficient * rule.gain.value,
    )
    rounding = np.where(
        small,
        20.0 * U * np.abs(term),
        grown.error
        + np.abs(coefficient) * rule.gain.error
        + 3.0 * U * (np.abs(grown.value) + np.abs(coefficient * rule.gain.value)),
    )
    slope = grown.value - (1.0 - lean) * rule.gain.value  # q (e^{al} - e^l)
    moved = _moved_by_loss(rule, a, slope)
    errors = rounding + np.abs(term) * np.expm1(rule.weight_error) + moved
    total = node_sum(term)
    defect = (exponents - 1.0) * rule.missing_q - exponents * rule.missing_p
    error = (
        errors.sum(axis=-1)
        + additions(rule.nodes) * U * node_sum(np.abs(term))
        + (np.abs(1.0 - exponents) + np.abs(exponents)) * identity_error
        + 36.0 * U * (np.abs((exponents - 1.0) * rule.missing_q) + np.abs(exponents * rule.missing_p))
        + 4.0 * U * np.abs(total)
    )
    return total + defect, error * _SLACK + _UNDERFLOW


def _small_psi(a: Array, loss: Array) -> Array:
    """``psi_a(l)`` for a >= 0 and ``|l|, |a l| <= SWITCH``, to 12 u relative: no difference is taken.

    ``psi_a(l) = a (a - 1) l^2 sum_{k>=2} g_k l^{k-2} / k!``, and ``g_k = (a^{k-1} - 1) / (a - 1) = 1 + a g_{k-1} > 0``.
    """
    weights = np.empty((_SERIES, *a.shape))
    weights[0], weights[1:] = 1.0, a
    np.multiply.accumulate(weights, out=weights)
    np.add.accumulate(weights, out=weights)  # k powers, whose roundings are no more than k, and k sums
    weights /= _FACTORIALS.reshape(-1, *(1,) * a.ndim)
    total: Array = weights[-1] * loss
    for weight in weights[-2:0:-1]:  # Horner in l
        total += weight
        total *= loss
    total += weights[0]
    return a * (a - 1.0) * (loss * loss) * total


def _moved_by_loss(rule: LossRule, a: Array, slope: Array) -> Array:
    """What errors of the losses do to ``q psi_a``, given ``slope = q (e^{al} - e^l)``: both orders bounded."""
    shift = rule.loss_error
    first = a * np.abs(slope) * shift
    second = a * (1.0 + a) * (np.abs(slope) + 2.0 * rule.weight_p) * shift * shift
    return _SLACK * (first + second)


def _plain(rule: LossRule, exponents: Array) -> tuple[Array, Array]:
    """``ln M_f`` by sums of exponentials, and at exponents 0 and 1 by what is known of the masses; (K, R)."""
    value, error = _scaled(rule, exponents)
    for exponent, missing in zip(_IDENTITIES.tolist(), map(across, (rule.missing_q, rule.missing_p)), strict=True):
        known = (exponents == exponent) & (missing <= _MOSTLY)
        if known.any():
            slip = 36.0 * U * missing + across(rule.dropped)  # d ln(1 - m) is at most dm over what is left
            doubt = slip / np.maximum(1.0 - missing - slip, _UNDERFLOW)
            value = np.where(known, np.log1p(-np.minimum(missing, _MOSTLY)), value)
            error = np.where(known, doubt + ELEMENTARY * np.abs(value), error)
    return value, error


def _scaled(rule: LossRule, exponents: Array) -> tuple[Array, Array]:
    """``ln sum exp(ln q + a l)`` with the largest term taken out, and a bound on its error, at exponents (K, R)."""
    logs = exponents[:, :, None] * rule.loss + rule.log_weight
    peak = logs.max(axis=2)
    logs -= peak[:, :, None]
    terms = np.exp(logs, out=logs)
    total = node_sum(terms)
    # of an exponent a l + ln q - peak: 3 u of a l, 2 u of ln q, u of the peak, and what loss and weight are off by
    fixed, moved = rule.exponent_doubts
    own = (terms * fixed).sum(axis=2) + np.abs(exponents) * (terms * moved).sum(axis=2)
    most = rule.largest_doubt(exponents)
    relative = np.where(most <= _FIRST_ORDER, own / total, most)  # the mean serves small errors alone
    relative = relative + U * np.abs(peak) + ELEMENTARY + additions(rule.nodes) * U
    log_total = np.log(total)
    value = peak + log_total
    return value, _SLACK * relative + 2.0 * ELEMENTARY * (np.abs(log_total) + np.abs(value))


@final
@dataclass(frozen=True, eq=False)
class TiltedRule(Columns):
    """Rules tilted by theta: weights ``w_j`` of sum one, losses as offsets ``y_j`` from a centre of few bits.

    Attributes
    ----------
    weight, offset : ndarray, shape (B, n)
        ``w_j = q_j e^{a l_j} / M_f`` and ``y_j = l_j - centre``; one row of offsets where rules share their losses.
    centre : ndarray, shape (B,)
        Near the tilted mean; its product with the count is exact.
    drift, drift_error : ndarray, shape (B,)
        ``sum_j w_j y_j`` and a bound on its error.
    spread : ndarray, shape (B,)
        ``sum_j w_j y_j^2``: the tilted variance and the square of the drift, to within the errors.
    bend_error, slope_error : ndarray, shape (B,)
        c and d such that ``sum_j w_j (e^{i s y_j} - 1 - i s y_j)``, as computed, is off by at most ``min(c s^2, d s)``.
    weight_error : ndarray, shape (B,)
        Bound on ``sum_j`` of the errors of the weights.
    quadrature : ndarray, shape (B,)
        Bound on ``|ln M_f - ln M|``.
    """

    weight: Array
    offset: Array
    centre: Array
    drift: Array
    drift_error: Array
    spread: Array
    bend_error: Array
    slope_error: Array
    weight_error: Array
    quadrature: Array


def tilt(rule: LossRule, exponent: Numbers, moments: LogMoments) -> TiltedRule:
    """The rules tilted by ``exponent - 1``, the first exponent of the moments given."""
    log_m, log_m_error = moments.value[0], moments.error[0]
    power = column(exponent)
    x = power * rule.loss
    weight = np.exp(rule.log_weight + x - column(log_m))
    relative = rule.weight_error + np.abs(power) * rule.loss_error + ELEMENTARY + column(log_m_error)
    relative = _SLACK * (relative + U * (3.0 * np.abs(x) + 2.0 * np.abs(rule.log_weight) + column(np.abs(log_m))))
    if (large := relative > _FIRST_ORDER).any():
        relative = np.where(large, np.expm1(np.minimum(relative, OVERFLOW)), relative)
    mean, mean_error = _mean(rule, power, x, moments, weight, relative)
    rows = len(rule.loss)
    if rows == rule.size:
        centre = _rounded(mean, rule.counts)
    else:  # near the means of all
        centre = np.full_like(mean, _rounded(mean[rule.size // 2], rule.counts.max()))
    offset = rule.loss - column(centre[:rows])
    slip = rule.loss_error + U * np.abs(offset)
    size = np.abs(offset)
    evaluation = (24.0 + 3.0 * additions(rule.nodes)) * U + relative
    spread = (weight * size * size).sum(axis=1)
    bend_error = _SLACK * (weight * size * (evaluation * size + slip)).sum(axis=1) + (weight * slip * slip).sum(axis=1)
    slope_error = 2.0 * _SLACK * (weight * (evaluation * size + slip)).sum(axis=1)
    drift = mean - centre
    return TiltedRule(
        weight=weight,
        offset=offset,
        centre=centre,
        drift=drift,
        drift_error=mean_error + 3.0 * U * np.abs(drift),
        spread=spread,
        bend_error=bend_error + _UNDERFLOW,
        slope_error=slope_error,
        weight_error=_SLACK * (weight * relative).sum(axis=1) + _UNDERFLOW,
        quadrature=moments.quadrature[0],
    )


def _mean(
    rule: LossRule, exponent: Array, x: Array, moments: LogMoments, weight: Array, relative: Array
) -> tuple[Array, Array]:
    """``sum_j w_j l_j`` and a bound on its error: second order in the loss, but for large exponents, shape (R, 1)."""
    loss, log_m, log_m_error = rule.loss, moments.value[0], moments.error[0]
    size = np.abs(loss)
    fits = np.maximum((rule.log_weight + x).max(axis=1), log_m) < OVERFLOW  # of each term, and of the moment
    lean, part = leaning(exponent), moments.grown or rule.grown_by(exponent)
    # q (e^{al} - 1), as p (e^{(a-1) l} - 1) + p - q where a is above a half
    grown = part.value + lean * rule.gain.value
    grown_error = part.error + lean * rule.gain.error + U * np.abs(grown)
    term = loss * grown - rule.residual.value
    rounding = size * grown_error + rule.residual.error + 4.0 * U * (size * np.abs(grown) + rule.residual.value)
    whole = grown + rule.weight  # q e^{al}
    slope = np.abs(grown - rule.gain.value) + np.abs(x) * whole
    bend = (2.0 * np.abs(exponent) + exponent * exponent * size) * whole + rule.weight_p
    moved = rule.loss_error * (slope + bend * rule.loss_error)
    moment = np.exp(np.minimum(log_m, OVERFLOW))
    total = node_sum(term) + rule.missing_q - rule.missing_p
    error = (rounding + moved + np.abs(term) * np.expm1(rule.weight_error)).sum(axis=1)
    error = error + additions(rule.nodes) * U * node_sum(np.abs(term)) + moments.identity_error * 2.0
    error = error + 36.0 * U * (np.abs(rule.missing_q) + np.abs(rule.missing_p)) + _UNDERFLOW
    with np.errstate(divide="ignore", invalid="ignore"):  # where the moment vanishes, so that nothing is exact
        mean = total / moment
        mean_error = _SLACK * (error / moment + np.abs(mean) * (log_m_error + 2.0 * ELEMENTARY + U * np.abs(log_m)))
    exact = fits & (mean_error <= _EXACT * size.max(axis=1))
    if exact.all():
        return mean, mean_error
    first_order = node_sum(weight * loss)
    first_error = (weight * (relative * size + rule.loss_error)).sum(axis=1)
    first_error = _SLACK * (first_error + additions(rule.nodes) * U * node_sum(weight * size))
    better = exact | (fits & (mean_error < first_error))
    return np.where(better, mean, first_order), np.where(better, mean_error, first_error)


def _rounded(mean: Array, counts: Array) -> Array:
    """The mean with so few bits that its product with the count is exact."""
    bits = np.minimum(22.0, 52.0 - np.ceil(np.log2(counts + 1.0)))
    fraction, exponent = np.frexp(mean)
    whole = bits.astype(int)
    return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, whole)), exponent - whole))
