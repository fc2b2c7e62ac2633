"""The settings of Kafka Streams applications (`application: streams`): rows of the table in `settings`."""

from __future__ import annotations

from typing import Final

from groupstorm.storms.scenario.setting_types import Setting, settings_of

CONSUMER, STREAMS = "consumer", "streams"
STANDBYS: Final = "num.standby.replicas"
#: Kafka Streams has no public property for it.
LEAVE: Final = "leave_on_close"

STREAMS_SETTINGS: tuple[Setting, ...] = settings_of("streams")
