"""Events of dp-accounting to compositions (`from_dp_event`) and back (`to_dp_event`)."""

from hockeystick.integrations.dp_events.event import UnprovedEventError
from hockeystick.integrations.dp_events.reading import from_dp_event, parts_of
from hockeystick.integrations.dp_events.writing import to_dp_event

__all__ = ["UnprovedEventError", "from_dp_event", "parts_of", "to_dp_event"]
