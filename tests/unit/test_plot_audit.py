"""Claimed at most, seen at least: what is drawn is true between its points, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status

pytest.importorskip("matplotlib")

CLAIM = hs.account(hs.Gaussian(1.0))
MANY = hs.audit.counts(900, 1000, false_positives=80, negatives=1000)
ONE = hs.audit.one_run(1000, 300, correct=270)


@pytest.mark.parametrize("seen", [MANY, ONE], ids=["many runs", "one run"])
def test_what_is_drawn_is_true_between_its_points(seen: hs.audit.Audit) -> None:
    axes = hs.plots.audit(seen, CLAIM, end=3.0).axes[0]
    claimed, found = (np.asarray(line.get_xydata(), dtype=float).T for line in axes.lines)
    for epsilon in np.random.default_rng(4).uniform(0.0, 2.9, 12):
        # drawn straight from vertex to vertex on a logarithmic scale
        upper = np.exp(np.interp(epsilon, claimed[0], np.log(claimed[1])))
        assert upper >= CLAIM.delta(epsilon).upper * (1.0 - 1e-9)  # type: ignore[union-attr]  # of its exponential
        after = int(np.searchsorted(found[0], epsilon, side="right"))
        least = found[1][after - 1]
        assert found[1][after] == least  # a step
        assert least <= seen.delta(float(epsilon))
        assert least >= 0.9 * seen.delta(float(epsilon)) - 0.02


def test_the_title_says_whether_the_claim_is_refuted() -> None:
    assert hs.plots.audit(MANY, CLAIM).axes[0].get_title(loc="left").endswith(": refuted")
    assert hs.plots.audit(MANY, hs.account(hs.Gaussian(0.2))).axes[0].get_title(loc="left").endswith("not refuted")
    assert len(hs.plots.audit(MANY).axes[0].lines) == 1
    with pytest.raises(TypeError, match="proved claim"):
        hs.plots.audit(MANY, hs.account(hs.Gaussian(1.0), accountant=hs.accountants.GaussianLimit()))
    with pytest.raises(TypeError, match="audit from"):
        hs.plots.audit(CLAIM)  # type: ignore[arg-type]


def test_a_claim_in_one_direction_is_drawn_both_ways_as_it_is_judged() -> None:
    seen = hs.audit.counts(40, 100, false_positives=2, negatives=100)
    one_way, both = (hs.account(hs.Gaussian(0.2).poisson(0.3), adjacency=name) for name in ("add", "add-remove"))
    assert not seen.verdict(one_way).refuted
    drawn = [hs.plots.audit(seen, claim, end=3.0).axes[0].lines[0].get_xydata() for claim in (one_way, both)]
    np.testing.assert_array_equal(*drawn)


def test_nothing_seen_is_drawn_without_a_warning() -> None:
    nothing = hs.audit.one_run(1000, 90, correct=10)
    assert hs.plots.audit(nothing).axes[0].get_yscale() == "log"


def test_the_command_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = tmp_path / "claim.toml"
    claim.write_text('[[steps]]\nmechanism = "gaussian"\nnoise_multiplier = 1.0\n', encoding="utf-8")
    counts = ["--true-positives", "900", "--positives", "1000", "--false-positives", "80", "--negatives", "1000"]
    run = ["audit", *counts, "--claim", str(claim), "--plot"]
    assert main([*run, str(tmp_path / "seen.svg")]) == Status.REFUTED
    assert "<svg" in (tmp_path / "seen.svg").read_text(encoding="utf-8")
    assert main([*run, str(tmp_path / "seen.gif")]) == Status.BAD_INPUT
    assert main([*run, str(tmp_path / "missing" / "seen.png")]) == Status.BAD_INPUT
    assert "cannot write" in capsys.readouterr().err
