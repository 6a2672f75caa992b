"""Pairs as a caller may state them."""

from __future__ import annotations

import functools

from scipy.special import log_ndtr

from hockeystick.laws import ContinuousPair


@functools.cache
def stated_gaussian(mu: float, mass_error: float = 1e-12) -> ContinuousPair:
    """A Gaussian pair whose means are mu apart by its functions: one, so that its cells are computed once."""
    return ContinuousPair(
        loss=lambda x: mu * x - 0.5 * mu * mu,
        log_cdf_p=lambda x: log_ndtr(x - mu),
        log_tail_p=lambda x: log_ndtr(mu - x),
        log_cdf_q=log_ndtr,
        log_tail_q=lambda x: log_ndtr(-x),
        search=(-37.0, 38.0),
        loss_error=1e-14,
        mass_error=mass_error,
    )
