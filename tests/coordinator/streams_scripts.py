"""Parts of scripts of one streams group."""

from __future__ import annotations

from typing import Any

TOPOLOGY = {
    "epoch": 1,
    "subtopologies": [
        {"id": "0", "sources": ["in"], "sinks": ["rep"]},
        {"id": "1", "repartition": ["rep"], "changelogs": ["store"]},
    ],
}
OWNED = {"active": "$", "standby": "$", "warmup": "$"}
NOTHING: dict[str, Any] = {"active": {}, "standby": {}, "warmup": {}}
