"""Lines of rare large losses and what they say; their pieces, one at a time, and the integrals that these stand for."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
from flint import acb, arb, ctx

from hockeystick.engines.rare.line import RareLine
from hockeystick.engines.rare.pieces import Pieces
from hockeystick.engines.rare.runs import RareRuns
from tests.quadrature import DIGITS, integral, normal_density, panels


def sides(line: RareLine, epsilon: float) -> tuple[float, float]:
    """Of delta, for as many steps as the line is planned for."""
    run = RareRuns(line, line.losses.counts[None])
    lower, upper = run.sides(np.zeros(1, dtype=int), np.array([[epsilon]]))
    return float(lower[0, 0]), float(upper[0, 0])


def sides_around(truth: tuple[float, float], line: RareLine, epsilon: float) -> tuple[float, float]:
    """The same, which must have a truth between them that is known to lie between two numbers."""
    lower, upper = sides(line, epsilon)
    least, most = truth
    assert lower <= most
    assert least <= upper
    return lower, upper


def only(pieces: Pieces, place: int) -> Pieces:
    """One piece alone."""
    columns = {field.name: getattr(pieces, field.name) for field in fields(pieces) if field.name != "losses"}
    return replace(pieces, **{name: column[place : place + 1] for name, column in columns.items()})


def exact_piece(piece: Pieces, exponent: float, frequency: float, pieces: int = 12) -> complex:
    """The integral that the only piece stands for, between its ends."""
    with ctx.workdps(DIGITS):
        m, g, w = arb(piece.losses.shift), arb(piece.losses.rate), arb(piece.losses.width)
        (low,), (high,) = piece.ends.tolist()
        (below,), (above,) = piece.below.tolist(), piece.above.tolist()
        power = acb(exponent, frequency)

        def f(u: arb) -> acb:
            between = ((u - above) / w).erfc() / 2
            between -= ((u - below) / w).erfc() / 2 if math.isfinite(below) else 0
            return normal_density(u / m + m / 2) / m * between * (power * (g * u.expm1()).log1p()).exp()

        return complex(integral(f, panels(low, high, pieces)))
