"""Numbers of pods as Kubernetes has them: a count, or a share of the wanted number in per cent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_PERCENTAGE = re.compile(r"(\d{1,4})%")


@dataclass(frozen=True, slots=True)
class PodCount:
    """``number`` pods, or ``number`` per cent of the wanted number (`intstr.IntOrString`)."""

    number: int
    is_percentage: bool = False

    def of(self, wanted: int, *, round_up: bool) -> int:
        """The count that this is of ``wanted`` pods (`GetScaledValueFromIntOrPercent`)."""
        if not self.is_percentage:
            return self.number
        return -(-self.number * wanted // 100) if round_up else self.number * wanted // 100

    @property
    def as_written(self) -> int | str:
        return f"{self.number}%" if self.is_percentage else self.number


def parse_pod_count(written: Any) -> PodCount | None:
    """3 or "25%"; None if it is neither."""
    if isinstance(written, int) and not isinstance(written, bool) and written >= 0:
        return PodCount(written)
    if isinstance(written, str):
        if (match := _PERCENTAGE.fullmatch(written.strip())) is not None:
            return PodCount(int(match[1]), is_percentage=True)
        if written.strip().isascii() and written.strip().isdigit():
            return PodCount(int(written))
    return None
