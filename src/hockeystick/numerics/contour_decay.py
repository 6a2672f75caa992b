"""A bound on the tilted transform that falls with the frequency, from rectangles under the density of the loss.

Symbols: ``phi(s) = M(theta + i s) / M(theta)``. If the tilted law has density at least ``sum_k (m_k / w_k) 1_{I_k}``
for intervals I_k of length w_k, then

    |phi(s)| <= 1 - sum_k m_k (1 - |sinc(s w_k / 2)|),      sinc x = sin x / x,

and ``|sinc x| <= S(x)``, S the larger of ``e^{-x^2/6}`` and 0.21724 up to 1 / 0.21724 and ``1/x`` beyond. S does not
increase, so the bound at s holds for all larger s. The rectangles are the level sets of the largest unimodal step
function below lower bounds of the density in small cells, then those of what is left over
(`docs/derivations/contour.md`, section 5).

Guarantee: upper bounds. Cost: a sort of the cells and one exponential for each rectangle and s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.numerics.contour_rule import Array, Cells
from hockeystick.numerics.rounding import U

__all__ = ["Rectangles", "rectangles"]

_SAFE = 1.0 - 2.0**-30  # inward factor on masses and widths, far above their roundings
_RIPPLE = 0.21724  # above the largest |sinc x| beyond pi: 0.217233..., where tan x = x
_DOUBT = 2.0**-44  # of a loss relative to itself, far above its rounding
_PEELS = 2
_TOGETHER = 6  # rectangles merged where there are many rules
_FEW = 8
_MOST_LEVELS = 2048


@final
@dataclass(frozen=True, eq=False)
class Rectangles:
    """Uniform parts of the tilted law of each rule: masses and lengths (nats), shape (B, k)."""

    mass: Array
    width: Array

    def log_bound(self, frequencies: Array) -> Array:
        """At least ``ln |phi(t)|`` for all ``t >= s``, for frequencies s of shape (F,); shape (F, B)."""
        x = 0.5 * frequencies[:, None, None] * self.width
        near = np.minimum(x, 1.0 / _RIPPLE)
        majorant = np.where(
            x * _RIPPLE < 1.0, np.maximum(np.exp(near * near / -6.0), _RIPPLE), 1.0 / np.maximum(x, 1.0)
        )
        lost = (self.mass * (1.0 - majorant)).sum(axis=2)
        return np.asarray(np.log1p(-np.minimum(lost * _SAFE, 1.0 - 2.0**-40)))


def rectangles(cells: Cells, exponent: float, log_moment: Array) -> Rectangles:
    """Rectangles under the density of the tilted loss, given upper bounds on ``K(exponent - 1)``, shape (B,)."""
    grown = exponent * cells.loss
    logs = cells.log_density + grown - log_moment[:, None]
    doubt = _DOUBT * (10.0 + np.abs(logs)) + 32.0 * U * (np.abs(grown) + np.abs(cells.log_density))
    logs = logs - doubt
    height = np.exp(np.minimum(logs[:, 1:], logs[:, :-1]) - cells.log_slope - cells.sag(exponent)[:, None])
    size = np.abs(cells.loss)
    width = np.abs(np.diff(cells.loss, axis=1)) - _DOUBT * np.maximum(size[:, 1:], size[:, :-1])
    masses, widths = [], []
    for _ in range(_PEELS):
        profile = _unimodal_minorant(height)
        mass, length = _level_sets(profile, np.maximum(width, 0.0))
        masses.append(mass)
        widths.append(length)
        height = np.maximum(height - profile, 0.0) * _SAFE
    return Rectangles(np.concatenate(masses, axis=1) * _SAFE, np.concatenate(widths, axis=1) * _SAFE)


def _unimodal_minorant(density: Array) -> Array:
    """The largest function below ``density`` that falls away from its highest cell, row by row."""
    top = np.argmax(density, axis=1)[:, None]
    index = np.arange(density.shape[1])
    rising = np.minimum.accumulate(np.where(index >= top, density, np.inf), axis=1)
    falling = np.minimum.accumulate(np.where(index <= top, density, np.inf)[:, ::-1], axis=1)[:, ::-1]
    return np.where(index >= top, rising, falling)


def _level_sets(profile: Array, width: Array) -> tuple[Array, Array]:
    """Masses and lengths of the rectangles between consecutive levels of unimodal step functions, a few at a time.

    A few rectangles of like lengths count as one of the least length, which can only weaken the bound.
    """
    order = np.argsort(-profile, axis=1, kind="stable")
    level = np.take_along_axis(profile, order, axis=1)
    length = np.cumsum(np.take_along_axis(width, order, axis=1), axis=1)
    drop = level - np.concatenate((level[:, 1:], np.zeros((level.shape[0], 1))), axis=1)
    together = max(_TOGETHER if length.shape[0] > _FEW else 1, length.shape[1] // _MOST_LEVELS)
    starts = np.arange(0, length.shape[1], together)
    return np.add.reduceat(drop * length, starts, axis=1), length[:, starts]
