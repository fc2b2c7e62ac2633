"""The requests that `benchmarks.waits` sends, by their names."""

from __future__ import annotations

from benchmarks.dear_requests import administration, groups, records, share_groups
from benchmarks.dear_requests.frames import CASES

__all__ = ["CASES", "administration", "groups", "records", "share_groups"]
