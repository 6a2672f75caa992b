"""Small lattices, their compositions term by term, and windows that do not fit them."""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from mpmath import mp, mpf

from hockeystick.engines.lattice.compose import TiltedWindow
from hockeystick.engines.lattice.pld import LatticePLD, Side


def law(side: Side, *, seed: int, slack: float = 0.0, infinity: float = 0.0, size: int = 7) -> LatticePLD:
    """A few masses on a lattice."""
    rng = np.random.default_rng(seed)
    mass = rng.dirichlet(np.ones(size)) * (1.0 - infinity)
    index = np.sort(rng.choice(np.arange(-8, 9), size, replace=False)).astype(np.int64)
    return LatticePLD(side, 0.25, index, 0.0, np.log(mass), infinity, slack)


def composed(parts: Sequence[tuple[LatticePLD, int]], shift: float) -> Callable[[float], mpf]:
    """The curve of the composition with all losses moved, term by term; every epsilon is computed once."""
    masses: dict[int, mpf] = {0: mpf(1)}
    infinite = mpf(1)
    for pld, count in parts:
        own = [(int(i), mp.exp(mpf(float(log)))) for i, log in zip(pld.index, pld.log_mass, strict=True)]
        for _ in range(count):
            following: dict[int, mpf] = {}
            for place, mass in masses.items():
                for index, step in own:
                    following[place + index] = following.get(place + index, mpf(0)) + mass * step
            masses = following
            infinite *= 1 - mpf(pld.mass_at_infinity)

    falling = sorted(((mpf(place) / 4 + mpf(shift), mass) for place, mass in masses.items()), reverse=True)
    less = [-loss for loss, _ in falling]
    p = list(accumulate((mass for _, mass in falling), initial=mpf(0)))
    q = list(accumulate((mass * mp.exp(-loss) for loss, mass in falling), initial=mpf(0)))

    @functools.cache
    def delta(epsilon: float) -> mpf:
        above = bisect_left(less, -mpf(epsilon))
        return 1 - infinite + p[above] - mp.exp(mpf(epsilon)) * q[above]

    return delta


WINDOWS = [
    TiltedWindow(0.5, -3.0, 3.0, 0.1, 0.9),
    TiltedWindow(0.5, 0.0, 1.0, 0.05, 1.5),
    TiltedWindow(2.0, -1.0, 2.0, 1.0, 3.0),
    TiltedWindow(2.0, 3.0, 9.0, 1.0, 3.0),
    TiltedWindow(0.3, 2.0, 8.0, 0.1, 1.0),
    TiltedWindow(1.0, -40.0, 40.0, 0.5, 1.5),
]
