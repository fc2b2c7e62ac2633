"""The table of what a scenario can set: name, kind, default, bounds, meaning.

Settings that Kafka has are spelled as Kafka spells them.
"""

from __future__ import annotations

from groupstorm.storms.scenario.setting_types import Setting, settings_of
from groupstorm.storms.scenario.streams_settings import STREAMS_SETTINGS

SETTINGS: tuple[Setting, ...] = (
    *settings_of("group"),
    *settings_of("consumer"),
    *settings_of("application"),
    *settings_of("consumer_groups"),
    *settings_of("share_groups"),
    *settings_of("world"),
    *settings_of("deployments"),
    *STREAMS_SETTINGS,
    *settings_of("steps"),
)
