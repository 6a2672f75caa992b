"""Accountants: one file each, seeing pairs and never mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.accountants.base import Accountant as Accountant
    from hockeystick.accountants.base import DirectedCurve as DirectedCurve
    from hockeystick.accountants.certified import Certified as Certified
    from hockeystick.accountants.contour import Contour as Contour
    from hockeystick.accountants.exact import Exact as Exact
    from hockeystick.accountants.fourier import Fourier as Fourier
    from hockeystick.accountants.gaussian_limit import GaussianLimit as GaussianLimit
    from hockeystick.accountants.lattice import Lattice as Lattice
    from hockeystick.accountants.moments import Moments as Moments
    from hockeystick.accountants.monte_carlo import MonteCarlo as MonteCarlo
    from hockeystick.accountants.monte_carlo import samples_needed as samples_needed
    from hockeystick.accountants.prv import PRV as PRV
    from hockeystick.accountants.renyi import RENYI_ORDERS as RENYI_ORDERS
    from hockeystick.accountants.renyi import RenyiCurve as RenyiCurve
    from hockeystick.accountants.renyi import renyi as renyi
    from hockeystick.accountants.saddle_point import SaddlePoint as SaddlePoint

attach(
    __name__,
    {
        "hockeystick.accountants.base": "Accountant DirectedCurve",
        "hockeystick.accountants.certified": "Certified",
        "hockeystick.accountants.contour": "Contour",
        "hockeystick.accountants.exact": "Exact",
        "hockeystick.accountants.fourier": "Fourier",
        "hockeystick.accountants.gaussian_limit": "GaussianLimit",
        "hockeystick.accountants.prv": "PRV",
        "hockeystick.accountants.lattice": "Lattice",
        "hockeystick.accountants.moments": "Moments",
        "hockeystick.accountants.monte_carlo": "MonteCarlo samples_needed",
        "hockeystick.accountants.renyi": "RENYI_ORDERS RenyiCurve renyi",
        "hockeystick.accountants.saddle_point": "SaddlePoint",
    },
)
