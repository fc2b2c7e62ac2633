"""The cost of a storm of share consumers, each with ten records a second.

    python -m benchmarks.share_storms [--consumers 60] [--rounds 3]

Two forms, in turn: for a minute consumers that keep up, whose fetches find about one record each, and for an
hour consumers at their capacity, whose fetches find max.poll.records (500). CPU time of the process, the
least of all rounds, and what an hour of 1,000 consumers takes at that rate: the work is per fetch, so it
grows with consumers and time.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import Any, Final

from tests.storms.storms_in_memory import scenario, storm

_FORMS: Final[dict[str, dict[str, Any]]] = {
    "keep up, a record a fetch": {"record_rate": 10, "process_ms": 10, "least_duration_ms": 60_000},
    "at capacity, 500 records a fetch": {
        "record_rate": 20,
        "process_ms": 100,
        "group.share.record.lock.duration.ms": 60_000,
        "least_duration_ms": 3_600_000,
    },
}
_RECORDS_OF_AN_HOUR: Final = 1_000 * 10 * 3_600


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--consumers", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    least: dict[str, tuple[float, int, int]] = {}
    for _ in range(options.rounds):
        for form, own in _FORMS.items():
            settings = {
                "group.protocol": "share",
                "members": options.consumers,
                "partitions": options.consumers,
                "group.share.max.size": 1_000,
                "poll_interval_ms": 0,
                "tail_ms": 0,
                **own,
            }
            what = scenario([{"at_ms": 1_000, "do": "start"}], **settings)
            gc.collect()  # the storm before has left cycles
            begun_s = time.process_time()
            run = storm(what)
            cpu_s = time.process_time() - begun_s
            fetches = len(run.events("share_records_acquired"))
            found = (cpu_s, fetches, run.figures.records_processed or 0)
            least[form] = min(least.get(form, found), found)
    for form, (cpu_s, fetches, records) in least.items():
        hour_s = cpu_s / records * _RECORDS_OF_AN_HOUR
        print(
            f"{form}: {1e6 * cpu_s / fetches:.0f} us a fetch, {1e6 * cpu_s / records:.1f} us a record; "
            f"an hour of 1,000 consumers: {hour_s:,.0f} s of CPU"
        )


if __name__ == "__main__":
    main()
