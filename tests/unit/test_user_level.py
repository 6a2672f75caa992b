"""User-level DP-SGD: which step each way of sampling is."""

from __future__ import annotations

import pytest

import hockeystick as hs


def test_sampled_users_are_poisson_steps_and_sampled_examples_are_groups() -> None:
    users = hs.dpsgd.user_level_run(2.0, 50, rate=0.1, sample="users")
    assert users == hs.Gaussian(2.0).poisson(0.1) * 50
    examples = hs.dpsgd.user_level_run(2.0, 50, rate=0.1, sample="examples", examples_per_user=3)
    assert examples == hs.GaussianMixture.poisson_group(2.0, rate=0.1, size=3) * 50
    one = hs.dpsgd.user_level_run(2.0, 50, rate=0.1, sample="examples", examples_per_user=1)
    single, group = (hs.account(run).epsilon(1e-6) for run in (users, one))
    assert isinstance(single, hs.Bound)
    assert isinstance(group, hs.Bound)
    assert max(float(single.lower), float(group.lower)) <= min(float(single.upper), float(group.upper))
    assert hs.account(examples).epsilon(1e-6).sides[0] > single.upper


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(TypeError, match="examples_per_user"):
        hs.dpsgd.user_level_run(1.0, 10, rate=0.1, sample="examples")
    with pytest.raises(TypeError, match="clipped as one"):
        hs.dpsgd.user_level_run(1.0, 10, rate=0.1, sample="users", examples_per_user=3)
    with pytest.raises(ValueError, match="sample"):
        hs.dpsgd.user_level_run(1.0, 10, rate=0.1, sample="anything")
