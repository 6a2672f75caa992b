"""Dominating pairs: what a mechanism is, for one sampling scheme and one direction."""

# what every law can make of itself
from hockeystick.laws.joined import JoinedPair as JoinedPair
from hockeystick.laws.reversed import ReversedPair as ReversedPair
from hockeystick.laws.subsampled import SubsampledPair as SubsampledPair
from hockeystick.lazy import attach

attach(__name__)  # every other law is loaded where it is first made: each command and answer needs few of them
