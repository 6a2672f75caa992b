"""Events that TensorFlow Privacy makes, read as what they are.

Its analysis needs dp-accounting alone, and runs wherever its files are; its queries need TensorFlow, in an environment
of its own: `make test-tensorflow-privacy`.
"""

from __future__ import annotations

import importlib.util
import math
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import dp_accounting
import pytest

import hockeystick as hs
from hockeystick.integrations.dp_accounting import HockeystickAccountant

DELTA = 1e-5


@pytest.fixture(scope="module")
def analysis() -> ModuleType:
    """The file of the analysis, loaded without the package around it, which imports TensorFlow."""
    try:
        package = distribution("tensorflow-privacy")
    except PackageNotFoundError:
        pytest.skip("tensorflow-privacy is not installed")
    path = Path(str(package.locate_file("tensorflow_privacy/privacy/analysis/compute_dp_sgd_privacy_lib.py")))
    spec = importlib.util.spec_from_file_location("compute_dp_sgd_privacy_lib", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("rate", "meant"),
    [(0.01, hs.Gaussian(1.1).poisson(0.01) * 500), (None, hs.Gaussian(1.1) * 5)],
)
def test_its_analysis_takes_the_accountant_and_says_the_certified_upper_side(
    analysis: ModuleType, monkeypatch: pytest.MonkeyPatch, rate: float | None, meant: hs.Composition
) -> None:
    made: list[HockeystickAccountant] = []

    def accountant(_: object) -> HockeystickAccountant:
        made.append(HockeystickAccountant())
        return made[-1]

    monkeypatch.setattr(analysis.AccountantType, "get_accountant", accountant)
    found = analysis._compute_dp_sgd_example_privacy(5.0, 1.1, DELTA, False, rate)
    assert made[-1].composition == meant
    assert found == hs.account(meant).epsilon(DELTA).upper


def query_event(query: Any) -> Any:
    tensorflow = pytest.importorskip("tensorflow")
    state = query.initial_global_state()
    params = query.derive_sample_params(state)
    sample = query.initial_sample_state(tensorflow.zeros(3))
    for _ in range(4):
        sample = query.accumulate_record(params, sample, tensorflow.ones(3))
    _, _, event = query.get_noised_result(sample, state)
    return event


def queries() -> list[tuple[str, Any]]:
    adaptive = hs.Gaussian(2.0) + hs.Gaussian(1.0)
    return [
        ("GaussianSumQuery(1.0, 4.0)", hs.Gaussian(4.0) * 1),
        ("NormalizedQuery(tfp.GaussianSumQuery(2.0, 4.0), 4)", hs.Gaussian(2.0) * 1),
        ("QuantileAdaptiveClipSumQuery(1.0, 2.0, 0.5, 0.2, 0.5, 4)", adaptive),
        ("NoPrivacySumQuery()", hs.ApproximateDP(0.0, 1.0) * 1),
    ]


@pytest.mark.parametrize(("made", "meant"), queries())
def test_the_events_of_its_queries_are_read_tensors_included(made: str, meant: hs.Composition) -> None:
    pytest.importorskip("tensorflow")
    tfp = pytest.importorskip("tensorflow_privacy")
    event = query_event(eval(f"tfp.{made}", {"tfp": tfp}))  # noqa: S307 - the lines above
    accountant = HockeystickAccountant().compose(dp_accounting.SelfComposedDpEvent(event, 3))
    assert accountant.composition == meant * 3
    known = hs.account(meant * 3).epsilon(DELTA).upper if meant != hs.ApproximateDP(0.0, 1.0) * 1 else math.inf
    assert accountant.get_epsilon(DELTA) == known


def test_queries_without_a_description_are_unsupported() -> None:
    pytest.importorskip("tensorflow")
    tfp = pytest.importorskip("tensorflow_privacy")
    tensorflow = pytest.importorskip("tensorflow")
    query = tfp.DiscreteGaussianSumQuery(l2_norm_bound=10.0, stddev=4.0)
    state = query.initial_global_state()
    sample = query.initial_sample_state(tensorflow.zeros(3, tensorflow.int32))
    sample = query.accumulate_record(query.derive_sample_params(state), sample, tensorflow.ones(3, tensorflow.int32))
    _, _, event = query.get_noised_result(sample, state)
    assert not HockeystickAccountant().supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError, match="no description"):
        HockeystickAccountant().compose(event)
