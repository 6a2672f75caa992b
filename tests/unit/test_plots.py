"""Pictures show the brackets that were computed, and are returned for the caller to change."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import plots
from hockeystick.app.canvas import between
from hockeystick.bound import Bound

figures = pytest.importorskip("matplotlib.figure")


def rendered(figure: object) -> bytes:
    assert isinstance(figure, figures.Figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def test_privacy_curve_draws_the_safe_side_and_a_band() -> None:
    curve = hs.account(hs.Gaussian(1.0))
    figure = plots.privacy_curve(curve, end=2.0)
    axes = figure.axes[0]
    x, y = np.asarray(axes.lines[0].get_xydata(), dtype=float).T
    bound = curve.delta(x[::2])
    assert isinstance(bound, Bound)
    np.testing.assert_allclose(y[::2], bound.upper, rtol=1e-9)
    assert len(axes.patches) == 1
    assert axes.get_yscale() == "log"
    assert rendered(figure).startswith(b"\x89PNG")


def test_titles_write_a_delta_as_it_was_given() -> None:
    step = hs.Gaussian(10.0)
    assert hs.plots.epsilon_against_steps(step, [1, 2], delta=1e-6).axes[0].get_title(loc="left") == "ε at δ = 1e-6"
    noise = hs.plots.noise_against_rate([0.01], epsilons=[1.0], delta=1e-6, steps=100, precision=1e-2)
    assert "(ε, 1e-6)-DP" in noise.axes[0].get_title(loc="left")


def test_a_trivial_lower_bound_does_not_set_the_scale() -> None:
    run = hs.Gaussian(1.0).poisson(0.01) * 100
    curve = hs.account(run, accountant=hs.accountants.Moments())
    figure = plots.privacy_curve({"moments": curve}, end=1.0)
    assert figure.axes[0].get_ylim()[0] > 1e-30
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["moments"]


def test_an_estimate_is_a_dashed_line_without_a_band() -> None:
    run = hs.Gaussian(1.0).poisson(0.01) * 1000
    figure = plots.privacy_curve(hs.account(run, accountant=hs.accountants.SaddlePoint()), end=1.0)
    assert figure.axes[0].lines[0].get_linestyle() == "--"
    assert not figure.axes[0].patches


def test_trade_off_of_a_sampled_mechanism_shows_both_directions_and_of_a_symmetric_one_a_single_line() -> None:
    sampled = plots.trade_off(hs.account(hs.Gaussian(0.6).poisson(0.2) * 3))
    plain = plots.trade_off(hs.account(hs.Gaussian(1.0)))
    assert [len(figure.axes[0].lines) for figure in (sampled, plain)] == [3, 2]
    lines = [np.asarray(line.get_xydata(), dtype=float) for line in sampled.axes[0].lines[:2]]
    there, not_there = (np.interp(0.05, line[:, 0], line[:, 1]) for line in lines)
    assert there < not_there  # near alpha 0 the sampled record is easier to claim present
    assert rendered(sampled)


def test_directions_of_one_pair_of_which_datasets_show_different_things_are_drawn_apart() -> None:
    curve = hs.account(hs.Gaussian(5.0).shuffled(batch_size=2, population=10), "zero-out")
    assert curve.composition.pairs("zero-out") == curve.composition.pairs("zero-in")
    axes = plots.trade_off(curve).axes[0]
    assert [line.get_label() for line in axes.lines] == ["zero-out", "zero-in", "blind guessing"]


def test_epsilon_against_steps_rises_and_names_its_lines() -> None:
    steps = {"1": hs.Gaussian(1.0).poisson(0.01), "2": hs.Gaussian(2.0).poisson(0.01)}
    figure = plots.epsilon_against_steps(steps, [300, 1000, 10_000], delta=1e-5)
    first, second = (np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[0].lines[1::2])  # the markers
    assert np.all(np.diff(first) > 0.0)
    assert np.all(second < first)
    assert figure.axes[0].get_xscale() == "log"


def test_noise_against_rate_rises_with_the_rate_and_falls_with_epsilon() -> None:
    figure = plots.noise_against_rate([0.005, 0.01], epsilons=[1.0, 4.0], delta=1e-6, steps=1000, precision=1e-3)
    tight, loose = (np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[0].lines[1::2])
    assert np.all(np.diff(tight) > 0.0)
    assert np.all(loose < tight)


def test_noise_that_nothing_proves_unsafe_has_no_lower_side() -> None:
    """At rates of at most delta any noise meets the target, however little: the truth is the least that is allowed."""
    found = hs.dpsgd.noise_multipliers_for(epsilon=1.0, delta=1e-5, steps=1, rates=[1e-6, 1e-5, 0.01])
    assert [one.unsafe is None for one in found] == [True, True, False]
    band = between(found)
    assert np.asarray(band.lower).tolist() == [1e-6, 0.0, found[2].unsafe]
    assert np.asarray(band.upper).tolist() == [1e-6, found[1].value, found[2].value]
    above_alone = hs.dpsgd.noise_multipliers_for(
        epsilon=1.0, delta=1e-6, steps=1, rates=[0.01], accountant=hs.accountants.Moments(), precision=1e-2
    )
    assert between(above_alone).lower == 0.0


def test_pictures_do_not_touch_pyplot() -> None:
    import sys

    before = "matplotlib.pyplot" in sys.modules
    plots.privacy_curve(hs.account(hs.Gaussian(1.0)), end=1.0)
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(TypeError, match="PrivacyCurve"):
        plots.privacy_curve(hs.Gaussian(1.0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="direction"):
        plots.trade_off(hs.account(hs.Gaussian(1.0)), directions=["sideways"])
    with pytest.raises(TypeError, match="counts must be an integer"):
        plots.epsilon_against_steps(hs.Gaussian(1.0), [10.9], delta=1e-5)


def test_a_notebook_shows_the_figure_without_pyplot() -> None:
    figure = plots.privacy_curve(hs.account(hs.Gaussian(1.0)), end=1.0)
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]  # what IPython asks for
    assert pickle.loads(pickle.dumps(figure)).axes  # noqa: S301 - our own


def test_pictures_are_drawn_where_the_caller_says() -> None:
    axes = figures.Figure().subplots(2, 2).ravel()
    curve, step = hs.account(hs.Gaussian(1.0)), hs.Gaussian(10.0)
    drawn = [
        plots.privacy_curve(curve, end=1.0, ax=axes[0]),
        plots.trade_off(curve, ax=axes[1]),
        plots.epsilon_against_steps(step, [1, 2], delta=1e-6, ax=axes[2]),
        plots.noise_against_rate([0.01], epsilons=[1.0], delta=1e-6, steps=10, precision=1e-2, ax=axes[3]),
    ]
    assert all(figure is axes[0].figure for figure in drawn)
    assert all(one.lines for one in axes)


def test_several_runs_are_traded_off_in_one_picture_on_either_scale() -> None:
    runs = {"one": hs.account(hs.Gaussian(1.0), "remove"), "two": hs.account(hs.Gaussian(2.0), "remove")}
    axes = plots.trade_off(runs, scale="logarithmic").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [line.get_label().partition(":")[0] for line in axes.lines] == ["one", "two", "blind guessing"]
    false_alarms, missed = axes.lines[0].get_data()
    truth = runs["one"].trade_off(false_alarms, direction="remove", tolerance=1e-3).false_negative_rate
    assert np.all(missed <= truth.sides[1])
    seen = truth.sides[0] > 1e-4
    assert np.all(missed[seen] >= 0.8 * truth.sides[0][seen])
    with pytest.raises(ValueError, match="scale must be one of"):
        plots.trade_off(runs, scale="log")


def test_few_points_have_a_legible_tick_each() -> None:
    for numbers in ([100, 200], [100, 10_000]):
        axes = plots.epsilon_against_steps(hs.Gaussian(10.0), numbers, delta=1e-6).axes[0]
        assert [label.get_text() for label in axes.get_xticklabels()] == [f"{number:,}" for number in numbers]
        assert axes.get_xticks(minor=True).size == 0


def test_contours_pass_between_the_plans_on_either_side_of_a_level() -> None:
    found = hs.sweep(
        lambda noise, steps, rate: hs.Gaussian(noise).poisson(rate) * steps,
        noise=[1.2, 0.8, 1.0],
        rate=[0.01, 1.5],
        steps=[100, 1000, 5000],
        delta=1e-5,
    )
    figure = plots.contours(found, x="steps", y="noise", at={"rate": 0.01}, levels=[2.0])
    said = "epsilon at adjacency add-remove, delta 1e-5, rate 0.01; interpolated between the dots"
    assert figure.axes[0].get_title(loc="left") == said
    (line,) = figure.axes[0].collections[0].get_paths()
    upper = np.asarray(found.bound.upper)[[1, 2, 0], 0, :]
    for steps, noise in line.vertices:
        i, j = np.searchsorted([0.8, 1.0, 1.2], noise), np.searchsorted([100, 1000, 5000], steps)
        near = upper[max(i - 1, 0) : i + 1, max(j - 1, 0) : j + 1]
        assert near.min() <= 2.0 <= near.max()
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_xscale()) == ("steps", "log")
    assert rendered(figure)
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.contours(found, at={"rate": 1.5})
    with pytest.raises(ValueError, match="needs two different axes of noise, rate, steps"):
        plots.contours(found)
    with pytest.raises(ValueError, match=r"rate has no value 0\.1"):
        plots.contours(found, at={"rate": 0.1})
    with pytest.raises(ValueError, match="needs two different axes"):
        plots.contours(found, x="noise", y="steps", at={"rate": 0.01, "noise": 1.0})
    with pytest.raises(ValueError, match=r"two different numbers or more along either axis, got steps=\[2, 2\]"):
        plots.contours(hs.sweep(lambda steps, of: of * steps, steps=[2, 2], of=[hs.Gaussian(1.0)], delta=1e-5))


def test_contours_of_what_was_found_are_of_the_safe_values() -> None:
    found = hs.sweep(
        lambda noise, steps: hs.Gaussian(noise) * steps,
        find="noise",
        steps=[1, 10, 100],
        epsilon=[1.0, 2.0],
        delta=1e-5,
        settings={"safe": "larger", "precision": 1e-3},
    )
    figure = plots.contours(found, levels=[6.0])
    assert figure.axes[0].get_ylabel() == "epsilon"
    assert rendered(figure)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.privacy_curve({"a": 1.0}),  # type: ignore[dict-item]
        lambda: plots.trade_off({"a": None}),  # type: ignore[dict-item]
        lambda: plots.privacy_curve(hs.account(hs.Gaussian(1.0)), ax="here"),  # type: ignore[arg-type]
        lambda: plots.contours(hs.account(hs.Gaussian(1.0))),  # type: ignore[arg-type]
        lambda: plots.audit(hs.audit.counts(9, 10, false_positives=1, negatives=10), 1.0),  # type: ignore[arg-type]
        lambda: hs.audit.counts(9, 10, false_positives=1, negatives=10).verdict("a"),  # type: ignore[arg-type]
        lambda: plots.epsilon_against_steps(hs.Gaussian(1.0), [1, 2], delta=[1e-5, 1e-6]),  # type: ignore[arg-type]
        lambda: hs.audit.scores([1.0, 10**400], [1.0, 2.0]),
        lambda: hs.spec.read(None),  # type: ignore[arg-type]
        lambda: hs.spec.load(3.0),  # type: ignore[arg-type]
        lambda: hs.spec.save("a", "b.toml"),  # type: ignore[arg-type]
        lambda: hs.spec.of_run(3, delta=1e-5),  # type: ignore[arg-type]
        lambda: hs.spec.of_run(hs.Gaussian(1.0), delta=1e-5, title=3),  # type: ignore[arg-type]
        lambda: hs.spec.of_run(hs.Gaussian(1.0), delta=1e-5, circumstances={"examples": 3}),  # type: ignore[arg-type]
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(draw: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"^(curves|ax|delta|sweep|claim|members|text|path|spec|run|title|circum)"):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.epsilon_against_steps({}, [1, 2], delta=1e-5),
        lambda: plots.epsilon_against_steps(hs.Gaussian(1.0), [], delta=1e-5),
        lambda: plots.noise_against_rate([0.01], epsilons=[], delta=1e-5, steps=10),
        lambda: hs.spec.of_run(hs.Gaussian(1.0), "add-or-remove", delta=1e-5),
        lambda: hs.spec.of_run(hs.Gaussian(1.0), delta=1e-5, unit=" "),
        lambda: hs.spec.of_run(hs.Gaussian(1.0), delta=1e-5, tolerance=-1.0),
        lambda: hs.dpsgd.noise_multiplier_for(epsilon=1.0, delta=1e-6, steps=10**400, rate=0.01),
        lambda: hs.calibrate(hs.Gaussian, epsilon=float("inf"), delta=1e-5),
    ],
)
def test_what_cannot_be_drawn_or_kept_is_refused(draw: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must"):
        draw()


def test_a_curve_that_hides_nothing_is_drawn_at_the_top() -> None:
    axes = plots.privacy_curve(hs.account(hs.Gaussian(1e-3))).axes[0]
    assert axes.get_ylim() == (0.9, 1.0)


def test_a_picture_ends_where_the_outline_does() -> None:
    axes = plots.privacy_curve(hs.account(hs.Gaussian(0.02))).axes[0]
    assert axes.get_xlim() == (0.0, axes.lines[0].get_xdata()[-1].round(6)) == (0.0, 690.0)


def test_no_axis_goes_below_an_epsilon_of_0() -> None:
    assert plots.epsilon_against_steps(hs.Gaussian(1e6), [1, 2], delta=1e-5).axes[0].get_ylim()[0] == 0.0
