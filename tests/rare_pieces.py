"""Pieces of the law of a rare large loss, one at a time, and the integrals that they stand for."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

from mpmath import mp, mpf

from hockeystick.engines.rare.pieces import Pieces


def only(pieces: Pieces, place: int) -> Pieces:
    """One piece alone."""
    columns = {field.name: getattr(pieces, field.name) for field in fields(pieces) if field.name != "losses"}
    return replace(pieces, **{name: column[place : place + 1] for name, column in columns.items()})


def exact_piece(piece: Pieces, exponent: float, frequency: float, panels: int = 12) -> complex:
    """The integral that the only piece stands for, between its ends."""
    m, g, w = mpf(piece.losses.shift), mpf(piece.losses.rate), mpf(piece.losses.width)
    (low,), (high,) = piece.ends.tolist()
    (below,), (above,) = piece.below.tolist(), piece.above.tolist()

    def f(u: Any) -> Any:
        loss = mp.log1p(g * mp.expm1(u))
        between = mp.erfc((u - above) / w) / 2
        between -= mp.erfc((u - below) / w) / 2 if math.isfinite(below) else 0
        density = mp.exp(-((u / m + m / 2) ** 2) / 2) / (m * mp.sqrt(2 * mp.pi))
        return density * between * mp.exp(exponent * loss + 1j * frequency * loss)

    with mp.workdps(25):
        return complex(mp.quad(f, mp.linspace(low, high, panels + 1), method="gauss-legendre", maxdegree=4))
