"""What a worker process is ordered to run: the settings of one member, for any language."""

from __future__ import annotations

from typing import Any

from groupstorm.clients.config import ConsumerConfig
from groupstorm.storms.live.real_clients.libraries import Library
from groupstorm.storms.scenario.distributions import Distribution
from groupstorm.storms.scenario.randomness import DRAW_SPAN
from groupstorm.storms.scenario.settings import Settings

#: A distribution is handed over as so many quantiles, at equal distances from 0 to 100 %.
_QUANTILES = 101

#: The distributions that a member draws from, by the names that workers know.
_DURATIONS = {
    "poll_interval": "poll_interval_ms",
    "revoke_callback": "revoke_callback_ms",
    "assign_callback": "assign_callback_ms",
    "restore": "restore_ms",
    "process": "process_ms",
}


def order(
    library: Library, settings: Settings, config: ConsumerConfig, bootstrap: str, seed: int
) -> dict[str, Any]:
    """The command that starts the consumer of ``config`` in a worker process."""
    durations = {name: _quantiles_us(settings.distribution(setting)) for name, setting in _DURATIONS.items()}
    return {
        "member": config.client_id,
        "topics": list(config.topics),
        "config": dict(library.configuration(config, bootstrap)),
        "max_poll_records": settings.integer("max.poll.records"),
        "durations": durations,
        "seed": seed,
        "leave_on_close": config.leave_group_on_close,
    }


def _quantiles_us(distribution: Distribution) -> list[int]:
    last = _QUANTILES - 1
    return [distribution.at(min(DRAW_SPAN - 1, DRAW_SPAN * number // last)) for number in range(_QUANTILES)]
