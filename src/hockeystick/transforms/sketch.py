"""Coarse rules, enough to choose by, and lower bounds on the density of a loss between points.

Guarantee: cells are bounds, sketches are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.numerics.columns import Array, Columns, Places

Rows = Places | slice
"""Which rows of a batch."""

Numbers = float | Array
"""One number, or one of each run, shape (R,)."""


@final
@dataclass(frozen=True, eq=False)
class Cells(Columns):
    """Lower bounds on the density of the loss between points of a variable x in which the loss is monotone.

    Attributes
    ----------
    loss : ndarray, shape (B, c + 1)
        Losses at the points (nats), monotone.
    log_density : ndarray, shape (B, c + 1)
        ``ln`` of the density of Q in x at the points.
    log_slope : ndarray, shape (B, c)
        Upper bounds on ``ln |dl / dx|`` in each cell.
    curvature, curvature_p, curvature_q : ndarray, shape (B,)
        The second derivative in x of ``ln`` of the density tilted to exponent a is at most
        ``curvature + a+ curvature_p + (1 - a)+ curvature_q``.
    square : ndarray, shape (B,)
        Squared length of a cell in x.

    Losses are accurate to 2^-44 relative, logarithms to ten times that plus 32 u times the terms they are made of.
    """

    loss: Array
    log_density: Array
    log_slope: Array
    curvature: Array
    curvature_p: Array
    curvature_q: Array
    square: Array

    def reversed(self) -> Cells:
        """Those of (Q, P): minus the losses, and the density of P, ``ln`` of which is that of Q and the loss."""
        turned = {"loss": -self.loss, "log_density": self.log_density + self.loss}
        return replace(self, curvature_p=self.curvature_q, curvature_q=self.curvature_p, **turned)

    def sag(self, exponent: Numbers) -> Array:
        """How far ``ln`` of the tilted density can lie below the smaller end of a cell, shape (B,)."""
        power, rest = np.maximum(exponent, 0.0), np.maximum(1.0 - np.asarray(exponent), 0.0)
        bend = self.curvature + power * self.curvature_p + rest * self.curvature_q
        return 0.125 * self.square * np.maximum(bend, 0.0)


@final
@dataclass(frozen=True, eq=False)
class Sketch(Columns):
    """A batch of rules whose errors are not known: enough to choose by, and for bounds on the decay.

    Attributes
    ----------
    loss, log_weight : ndarray, shape (B, n)
        As in `LossRule`, and so are the rest.
    """

    loss: Array
    log_weight: Array
    counts: Array
    cells: Cells | None
    dropped: Array

    def counted(self, counts: Array) -> Sketch:
        """The same rules, each composed so often."""
        return Sketch(self.loss, self.log_weight, counts, self.cells, self.dropped)

    @cached_property
    def log_p(self) -> Array:
        """``ln p_j = ln q_j + l_j``."""
        return self.log_weight + self.loss
