"""Accountants: one file each, seeing pairs and never mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.accountants.base import Accountant, DirectedCurve
    from hockeystick.accountants.certified import Certified
    from hockeystick.accountants.contour import Contour
    from hockeystick.accountants.exact import Exact
    from hockeystick.accountants.fourier import Fourier
    from hockeystick.accountants.gaussian_limit import GaussianLimit
    from hockeystick.accountants.lattice import Lattice
    from hockeystick.accountants.moments import Moments
    from hockeystick.accountants.monte_carlo import MonteCarlo, samples_needed
    from hockeystick.accountants.prv import PRV
    from hockeystick.accountants.renyi import RENYI_ORDERS, RenyiCurve, renyi
    from hockeystick.accountants.saddle_point import SaddlePoint

__all__ = [
    "PRV",
    "RENYI_ORDERS",
    "Accountant",
    "Certified",
    "Contour",
    "DirectedCurve",
    "Exact",
    "Fourier",
    "GaussianLimit",
    "Lattice",
    "Moments",
    "MonteCarlo",
    "RenyiCurve",
    "SaddlePoint",
    "renyi",
    "samples_needed",
]

attach(
    __name__,
    {
        "hockeystick.accountants.base": (
            "Accountant",
            "DirectedCurve",
        ),
        "hockeystick.accountants.certified": ("Certified",),
        "hockeystick.accountants.contour": ("Contour",),
        "hockeystick.accountants.exact": ("Exact",),
        "hockeystick.accountants.fourier": ("Fourier",),
        "hockeystick.accountants.gaussian_limit": ("GaussianLimit",),
        "hockeystick.accountants.prv": ("PRV",),
        "hockeystick.accountants.lattice": ("Lattice",),
        "hockeystick.accountants.moments": ("Moments",),
        "hockeystick.accountants.monte_carlo": (
            "MonteCarlo",
            "samples_needed",
        ),
        "hockeystick.accountants.renyi": (
            "RENYI_ORDERS",
            "RenyiCurve",
            "renyi",
        ),
        "hockeystick.accountants.saddle_point": ("SaddlePoint",),
    },
)
