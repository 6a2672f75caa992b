"""000, Figure 6: the Poisson-subsampled Gaussian, noise 1, rate 0.01, delta 1e-5, against privacy buckets.

Left half: both at spacing 0.005; right half: connect-the-dots and Algorithm 2 still at 0.005, buckets at 0.000075,
66.66 times finer. The paper finds its estimates significantly tighter at the same spacing for a mildly longer time, and
comparable on the larger one about 300 times faster. The numbers of steps are not stated.
"""

from __future__ import annotations

import hockeystick as hs
from reproduce.dots.against_buckets import Comparison, Limits, Roundings, compare
from reproduce.dots.compositions import LOWER, OURS, UPPER, WORSE
from reproduce.items import Item, Size
from reproduce.sheet import Sheet

NOISE, RATE = 1.0, 0.01
CASE = Comparison(
    figure="Figure 6",
    step=hs.Gaussian(NOISE).poisson(RATE),
    noise=NOISE,
    rate=RATE,
    mechanism="gaussian",
    spacing=0.005,
    fine=0.000075,
    published_speed_up=300.0,
    limits=Limits(
        same_upper=0.02,
        same_lower=0.1,
        coarse_upper=1.3,
        coarse_lower=4.0,
        coarse_ours=2.0,
        ours=0.7,
        memory=6.0,
    ),
)


def make(sheet: Sheet, size: Size) -> None:
    """Compare with privacy buckets at the same spacing and on a finer one."""
    compare(sheet, size, CASE, Roundings(UPPER, LOWER, OURS))


ITEM = Item(
    "000-fig6",
    "The subsampled Gaussian: dots against privacy buckets",
    minutes=3.0,
    make=make,
    swaps=WORSE,
)
