"""prv-accountant: privacy random variables, with its own error bound on both sides.

Its subsampled Gaussian is the remove direction only. ``delta_error`` follows its documentation: a thousandth of delta.
"""

from __future__ import annotations

from importlib.metadata import version

from prv_accountant import GaussianMechanism, PoissonSubsampledGaussianMechanism, PRVAccountant


def epsilon(steps, delta, eps_error=1e-3):
    """Lower, estimated and upper epsilon."""
    counts = [int(count) for _, _, count in steps]
    accountant = PRVAccountant(
        prvs=[_variable(noise, rate) for noise, rate, _ in steps],
        max_self_compositions=counts,
        eps_error=eps_error,
        delta_error=delta / 1000,
    )
    lower, estimate, upper = accountant.compute_epsilon(delta=delta, num_self_compositions=counts)
    return {"lower": lower, "estimate": estimate, "upper": upper}


def _variable(noise, rate):
    if rate == 1.0:
        return GaussianMechanism(noise_multiplier=noise)
    return PoissonSubsampledGaussianMechanism(noise_multiplier=noise, sampling_probability=rate)


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("prv-accountant", "numpy", "scipy")}
