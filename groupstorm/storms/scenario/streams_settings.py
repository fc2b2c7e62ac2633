"""The settings of Kafka Streams applications (`application: streams`): rows of the table in `settings`."""

from __future__ import annotations

from groupstorm.storms.scenario.setting_types import Setting, settings_of

CONSUMER, STREAMS = "consumer", "streams"

STREAMS_SETTINGS: tuple[Setting, ...] = settings_of("streams")
