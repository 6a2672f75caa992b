"""Why the contour does not answer."""

from __future__ import annotations

from typing import final

from hockeystick.errors import PrecisionError


@final
class ContourRefusal(PrecisionError):  # noqa: N818 - an answer of its own, not a mistake
    """The contour cannot reach the tolerance; the message says why.

    Attributes
    ----------
    reason : str
        One word or two: ``"tail"`` (the transform decays too slowly: few steps, or atoms), ``"length"`` (so slowly that
        more than twice the work allowed is expected), ``"aliasing"``,
        ``"saddle"`` (no saddle point among the tilts tried), ``"width"`` (the bracket came out too wide), ``"atoms"``
        (they are too many to be smoothed finely) or ``"pair"`` (no certified transform of a pair).
    """

    def __init__(self, reason: str, message: str, best: object | None = None) -> None:
        super().__init__(message, best)
        self.reason = reason
