"""Small storms that several tests look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A deployment of so few members that a run takes a tenth of a second.
FEW: Mapping[str, Any] = {
    "members": 4,
    "partitions": 8,
    "start_ms": {"exactly": 5000},
    "ready_ms": {"exactly": 500},
}
#: The same for the command line.
FEW_OPTIONS = [word for name, value in FEW.items() for word in ("--set", f"{name}={value}")]
SCENARIO = "rolling-deploy"
