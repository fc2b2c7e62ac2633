"""Producer ids (KIP-98)."""

from __future__ import annotations


class ProducerIds:
    """Takes each id once, from ``next_id`` on."""

    def __init__(self, next_id: int = 0) -> None:
        self.next_id = next_id

    def take(self) -> int:
        taken = self.next_id
        self.next_id += 1
        return taken
