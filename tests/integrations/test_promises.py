"""What every adapter promises: never less than the certified upper side, and errors of the framework's own kinds.

Each random run is put together twice: as the framework states it, and beside it as a composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.rationals import float_beside

Rng = np.random.Generator
Said = tuple[float, hs.Composition, str, float]  # epsilon as the adapter says it, the run, the relation, delta
Acts = list[Callable[[Any], Any]]
RUNS = 3


def delta_of(rng: Rng) -> float:
    return float(10.0 ** rng.uniform(-9, -3))


# ------------------------------------------------------------------------------------------------ random runs


def opacus(rng: Rng) -> Said:
    pytest.importorskip("opacus")
    from opacus.accountants import create_accountant

    import hockeystick.integrations.opacus

    accountant, steps, delta = create_accountant(hockeystick.integrations.opacus._NAME), [], delta_of(rng)
    for _ in range(3):
        noise, rate, count = float(rng.uniform(0.7, 4.0)), float(rng.uniform(1e-3, 0.2)), int(rng.integers(1, 50))
        for _ in range(count):
            accountant.step(noise_multiplier=noise, sample_rate=rate)
        steps.append((hs.Gaussian(noise).poisson(rate), count))
    return accountant.get_epsilon(delta), hs.compose(steps), "add-remove", delta


def dp_accounting(rng: Rng) -> Said:
    events = pytest.importorskip("dp_accounting.dp_event")
    from hockeystick.integrations.dp_accounting import RELATIONS, HockeystickAccountant

    relation = list(RELATIONS)[int(rng.integers(len(RELATIONS)))]
    noise, scale, rate = (float(value) for value in rng.uniform([0.7, 5.0, 0.01], [4.0, 20.0, 0.5]))
    count, delta = int(rng.integers(1, 50)), delta_of(rng)
    sampled = events.PoissonSampledDpEvent(rate, events.GaussianDpEvent(noise))
    accountant = HockeystickAccountant(relation).compose(sampled, count).compose(events.LaplaceDpEvent(scale))
    run = hs.Gaussian(noise).poisson(rate) * count + hs.Laplace(scale)
    return accountant.get_epsilon(delta), run, RELATIONS[relation], delta


def jax_privacy(rng: Rng) -> Said:
    analysis = pytest.importorskip("jax_privacy.accounting.analysis")
    from hockeystick.integrations.jax_privacy import HockeystickAccountantConfig

    noise, batch, count = float(rng.uniform(0.7, 4.0)), int(rng.integers(1, 200)), int(rng.integers(1, 500))
    delta = delta_of(rng)
    params = analysis.DpParams(noise_multipliers=noise, num_samples=1000, delta=delta, batch_size=batch)
    said = analysis.DpsgdTrainingAccountant(HockeystickAccountantConfig()).compute_epsilon(count, params)
    return said, hs.Gaussian(noise).poisson(batch / 1000) * count, "add-remove", delta


def flower(rng: Rng) -> Said:
    app = pytest.importorskip("flwr.serverapp")
    from hockeystick.integrations.flower import HockeystickAccountant

    method = list(app.SamplingMethod)[int(rng.integers(3))]
    replace, delta = method is app.SamplingMethod.WITHOUT_REPLACEMENT, delta_of(rng)
    relation = app.NeighboringRelation.REPLACE_ONE if replace else app.NeighboringRelation.ADD_OR_REMOVE_ONE
    people, noise, count = int(rng.integers(20, 500)), float(rng.uniform(1.0, 4.0)), int(rng.integers(1, 100))
    clients = int(rng.integers(1, people))
    accountant = HockeystickAccountant(app.PrivacyConfig(delta, people, relation, method))
    accountant.compose(app.GaussianPrivacyEvent(noise, clients, people), count)
    release: hs.Step = hs.Gaussian(noise / 2)  # a client more pushes another out
    if method is app.SamplingMethod.POISSON:
        release = hs.Gaussian(noise).poisson(float_beside(Fraction(clients, people), up=True))
    elif replace:
        release = hs.Gaussian(noise).without_replacement(batch_size=clients, population=people)
    return accountant.get_epsilon(delta), release * count, "substitute" if replace else "add-remove", delta


def opendp(rng: Rng) -> Said:
    dp = pytest.importorskip("opendp.prelude")
    from hockeystick.integrations.opendp import curve_of, privacy_profile

    dp.enable_features("contrib", "honest-but-curious")
    epsilon, stated, delta = float(rng.uniform(0.1, 2.0)), float(10.0 ** rng.uniform(-12, -7)), delta_of(rng)
    said = privacy_profile(curve_of(dp.approximate(dp.max_divergence()), (epsilon, stated)))
    return said.epsilon(delta), hs.ApproximateDP(epsilon, stated) * 1, "add-remove", delta


def diffprivlib(rng: Rng) -> Said:
    pytest.importorskip("diffprivlib")
    from hockeystick.integrations.diffprivlib import BudgetAccountant

    epsilon, count, slack = float(rng.uniform(0.01, 0.3)), int(rng.integers(20, 60)), delta_of(rng)
    said, delta = BudgetAccountant(slack=slack, spent_budget=[(epsilon, 1e-10)] * count).total()
    return float(said), hs.ApproximateDP(epsilon, 1e-10) * count, "add-remove", float(delta)


@pytest.mark.parametrize("adapter", [opacus, dp_accounting, jax_privacy, flower, opendp, diffprivlib])
@pytest.mark.parametrize("seed", range(RUNS))
def test_no_adapter_says_less_than_the_certified_upper_side(adapter: Callable[[Rng], Said], seed: int) -> None:
    said, run, relation, delta = adapter(np.random.default_rng([17, seed]))
    known = hs.account(run, relation)
    assert known.epsilon(delta).upper <= said
    assert said <= known.epsilon(delta).upper + 1e-3
    if math.isinf(said):
        return
    try:
        exact = hs.account(run, relation, accountant=hs.accountants.Exact()).delta(said)
    except (hs.PrecisionError, hs.UnknownPairError):
        return
    assert exact.lower <= delta


# ------------------------------------------------------------------------------------------------ bad input


def answer(make: Callable[[], Any], act: Callable[[Any], Any]) -> type[Exception] | None:
    accountant = make()
    try:
        act(accountant)
    except Exception as error:  # noqa: BLE001 - which one it is, is the question
        return type(error)
    return None


def compare(ours: Callable[[], Any], theirs: Callable[[], Any], acts: Acts) -> None:
    """Where theirs refuses, ours does by the same kind of error; where theirs computes on, ours says what is wrong."""
    for number, act in enumerate(acts):
        own, other = answer(ours, act), answer(theirs, act)
        assert own is not None, f"input {number} is not refused"
        assert issubclass(own, other or ValueError | TypeError), f"input {number}: {own}, not {other}"


def test_bad_input_to_opacus_is_refused_as_its_own_refuse_it() -> None:
    accountants = pytest.importorskip("opacus.accountants")
    from hockeystick.integrations.opacus import HockeystickAccountant

    good = {"noise_multiplier": 1.0, "sample_rate": 0.01}

    def says(delta: Any = 1e-5, **bad: Any) -> Callable[[Any], Any]:
        return lambda accountant: (accountant.step(**good | bad), accountant.get_epsilon(delta))

    acts = [says(noise_multiplier=-1.0), says(sample_rate=1.5), says(delta=-1.0), says(delta=2.0), says(other=1)]
    acts += [says(noise_multiplier="a"), lambda accountant: accountant.step()]
    acts += [lambda accountant, state=state: accountant.load_state_dict(state) for state in (None, {}, {"history": []})]
    compare(HockeystickAccountant, accountants.RDPAccountant, acts)


def test_bad_input_to_dp_accounting_is_refused_as_its_own_refuse_it() -> None:
    events = pytest.importorskip("dp_accounting.dp_event")
    from dp_accounting.rdp import RdpAccountant

    from hockeystick.integrations.dp_accounting import HockeystickAccountant

    gaussian = events.GaussianDpEvent(1.0)
    acts: Acts = [lambda a, count=count: a.compose(gaussian, count) for count in (0, -1, 1.5)]
    for event in (
        events.GaussianDpEvent(-1.0),
        events.PoissonSampledDpEvent(1.5, gaussian),
        events.SelfComposedDpEvent(gaussian, 0),
        events.UnsupportedDpEvent(),
        events.RandomizedResponseDpEvent(0.5, 2),
        "gaussian",
    ):
        acts.append(lambda a, event=event: a.compose(event))
    acts += [lambda a, delta=delta: a.compose(gaussian).get_epsilon(delta) for delta in (-1.0, 2.0)]
    acts.append(lambda a: a.compose(gaussian).get_delta(-1.0))
    compare(HockeystickAccountant, RdpAccountant, acts)
    with pytest.raises(ValueError, match="neighboring_relation"):
        HockeystickAccountant("add")


def test_bad_input_to_jax_privacy_is_refused_as_with_its_own() -> None:
    analysis = pytest.importorskip("jax_privacy.accounting.analysis")
    from jax_privacy.accounting.accountants import RdpAccountantConfig

    from hockeystick.integrations.jax_privacy import HockeystickAccountantConfig

    good = {"noise_multipliers": 1.0, "num_samples": 1000, "delta": 1e-5, "batch_size": 10}

    def says(count: Any = 10, **bad: Any) -> Callable[[Any], Any]:
        return lambda a: a.compute_epsilon(count, analysis.DpParams(**good | bad))

    acts = [says(noise_multipliers=-1.0), says(batch_size=2000), says(noise_multipliers=None), says(delta=-1.0)]
    compare(
        lambda: analysis.DpsgdTrainingAccountant(HockeystickAccountantConfig()),
        lambda: analysis.DpsgdTrainingAccountant(RdpAccountantConfig()),
        acts,
    )


def test_bad_input_to_flower_is_refused_as_its_own_refuse_it() -> None:
    app = pytest.importorskip("flwr.serverapp")
    from hockeystick.integrations.flower import HockeystickAccountant

    config = app.PrivacyConfig(1e-5, 1000, app.NeighboringRelation.ADD_OR_REMOVE_ONE, app.SamplingMethod.POISSON)
    event = app.GaussianPrivacyEvent(1.0, 10, 1000)
    acts: Acts = [lambda a, count=count: a.compose(event, count) for count in (0, -1, 1.5, True)]
    acts += [lambda a, d=d: (a.compose(event), a.get_epsilon(d)) for d in (0.0, 1.0, math.nan, True, "a")]
    acts += [lambda a, e=e: (a.compose(event), a.get_delta(e)) for e in (-1.0, math.nan)]
    acts += [lambda a, most=most: a.would_exceed(event, most) for most in (None, -1.0, 0.0)]
    acts += [lambda a: a.compose(app.GaussianPrivacyEvent(1.0, 10, 20)), lambda a: a.get_privacy_spent(2.0)]
    acts += [lambda a: a.load_state_dict({}), lambda a: a.compose("event")]
    compare(lambda: HockeystickAccountant(config), lambda: app.RdpAccountant(config), acts)


def test_bad_input_to_opendp_is_refused_as_its_own_profiles_refuse_it() -> None:
    dp = pytest.importorskip("opendp.prelude")
    from hockeystick.integrations.opendp import curve_of, privacy_profile

    dp.enable_features("contrib", "honest-but-curious")
    ours = privacy_profile(hs.account(hs.Gaussian(1.0)))
    for act in (lambda: ours.delta(-1.0), lambda: ours.delta(math.nan), lambda: ours.epsilon(-1.0)):
        with pytest.raises(dp.OpenDPException):
            act()
    for bad in (-1.0, math.nan, "a"):
        with pytest.raises((ValueError, TypeError)):
            curve_of(dp.zero_concentrated_divergence(), bad)


def test_bad_input_to_diffprivlib_is_refused_as_its_own_refuse_it() -> None:
    library = pytest.importorskip("diffprivlib")
    from hockeystick.integrations.diffprivlib import BudgetAccountant

    spends = [(-1.0, 0.0), (0.1, 2.0), ("a", 0.0), (0.0, 0.0), (2.0, 0.0), (math.nan, 0.0), (0.1, math.nan)]
    acts: Acts = [lambda a, spend=spend: a.spend(*spend) for spend in spends]
    acts += [lambda a, slack=slack: a.total(slack=slack) for slack in (0.2, -0.2, math.nan, "a")]
    acts += [lambda a, k=k: a.remaining(k) for k in (0, 1.5)]
    compare(
        *(lambda kind=kind: kind(epsilon=1.0, delta=0.1) for kind in (BudgetAccountant, library.BudgetAccountant)), acts
    )
    for bad in ({"epsilon": -1.0}, {"slack": 0.2}, {"delta": 2.0}, {"spent_budget": 1}, {"spent_budget": [(2.0, 0.0)]}):
        settings: dict[str, Any] = {"epsilon": 1.0, "delta": 0.1} | bad
        with pytest.raises((ValueError, TypeError)) as other:
            library.BudgetAccountant(**settings)
        with pytest.raises(other.type):
            BudgetAccountant(**settings)
