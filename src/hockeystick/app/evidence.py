"""What an attack saw, drawn against what is claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hockeystick.app.canvas import RED, Array, canvas, draw, finished, reach
from hockeystick.audit.base import Audit
from hockeystick.curve import PrivacyCurve
from hockeystick.decimals import plain
from hockeystick.errors import check_inside, check_positive, public_door
from hockeystick.readouts.directions import ways
from hockeystick.readouts.outline import sampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEPS = 97  # epsilons at which the audit is asked
_SEEN = 3e-3  # of the axis


@public_door
def audit(
    seen: Audit,
    claim: PrivacyCurve | None = None,
    *,
    end: float | None = None,
    least: float = 1e-6,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Claimed at most, seen at least: delta against epsilon, on a logarithmic scale.

    What is claimed is a band proved to hold the curve, with its upper side as the line. What was seen is a staircase:
    at every epsilon delta is at least that high, at the audit's confidence, all at once. Where the staircase is above
    the claim, the claim is refuted. What was seen holds either way, so that of a claim in one direction its reverse is
    drawn, too.

    Parameters
    ----------
    seen : Audit
        From `hockeystick.audit`.
    claim : PrivacyCurve, optional
        From `hockeystick.account`, by an accountant that certifies.
    end : float, optional
        The largest epsilon (nats); by default where the claim falls to ``least``, or a little beyond what was seen.
    least : float
        The smallest delta, above 0 and below 1.
    title : str, optional
        Of the picture; by default it says whether the claim is refuted.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.

    Examples
    --------
    >>> import hockeystick as hs
    >>> seen = hs.audit.counts(90, 100, false_positives=5, negatives=100)
    >>> audit(seen, hs.account(hs.Gaussian(2.0))).axes[0].get_title(loc="left")
    'Claimed at most, seen at least: refuted'
    """
    if not isinstance(seen, Audit):
        raise TypeError(f"seen must be an audit from hockeystick.audit, got {seen!r}")
    if claim is not None and not isinstance(claim, PrivacyCurve):
        raise TypeError(f"claim must be a privacy curve from hockeystick.account, got {claim!r}")
    lowest = check_inside("least", least)
    last = _last(seen, claim, lowest) if end is None else check_positive("end", end)
    figure, axes = canvas(title or _title(seen, claim), ax)
    if claim is not None:
        lines = sampled(claim, last, least=lowest, names=ways(claim), seen=_SEEN).privacy(lowest)
        draw(axes, lines, lines.above, 0, "claimed at most")
    x, y = _staircase(seen, last)
    axes.plot(x, y, color=RED, linewidth=1.6, label=f"seen at least, at confidence {plain(seen.confidence)}")
    axes.set(xlabel="ε (nats)", ylabel="δ", xlim=(0.0, last), ylim=(lowest, 1.0))
    axes.set_yscale("log")  # with its limits: it finds none where nothing was seen
    return finished(axes, legend=True, figure=figure)


def _title(seen: Audit, claim: PrivacyCurve | None) -> str:
    if claim is None:
        return "Seen at least"
    verdict = "refuted" if seen.verdict(claim).refuted else "not refuted"
    return f"Claimed at most, seen at least: {verdict}"


def _last(seen: Audit, claim: PrivacyCurve | None, least: float) -> float:
    own = 1.1 * seen.epsilon(least)
    return own or 1.0 if claim is None else max(own, reach({"": claim}, least))


def _staircase(seen: Audit, last: float) -> tuple[Array, Array]:
    """What delta is at least: between two epsilons what it is at least at the larger, since it falls."""
    epsilons = np.linspace(0.0, last, _STEPS)
    deltas = np.array([seen.delta(float(epsilon)) for epsilon in epsilons])
    return np.repeat(epsilons, 2)[:-1], np.repeat(deltas, 2)[1:]
