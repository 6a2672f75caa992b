"""dp-accounting's lattices at a spacing of the caller's choice, by connect-the-dots or by privacy buckets.

The figures of `reproduce/dots` ask it, at the spacings of the paper; the benchmarks do not. A step is a
Poisson-subsampled Gaussian, or with ``method="laplace"`` a subsampled Laplace whose noise is its scale.
"""

from __future__ import annotations

from importlib.metadata import version

from dp_accounting.pld import privacy_loss_distribution as pld


def epsilon(steps, delta, method="gaussian", rounding="connect-the-dots", spacing=1e-2):
    """The side of epsilon that ``rounding`` bounds: "connect-the-dots", "buckets-up" or "buckets-down"."""
    ((noise, rate, count),) = steps
    common = {
        "value_discretization_interval": spacing,
        "sampling_prob": rate,
        "pessimistic_estimate": rounding != "buckets-down",
        "use_connect_dots": rounding == "connect-the-dots",
    }
    if method == "laplace":
        one = pld.from_laplace_mechanism(parameter=noise, **common)
    else:
        one = pld.from_gaussian_mechanism(standard_deviation=noise, **common)
    side = "lower" if rounding == "buckets-down" else "upper"
    return {side: one.self_compose(int(count)).get_epsilon_for_delta(delta)}


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("dp-accounting", "numpy", "scipy")}
