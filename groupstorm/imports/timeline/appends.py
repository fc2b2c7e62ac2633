"""Partitions of __consumer_offsets that take no records: too few of their replicas are in sync."""

from __future__ import annotations

from typing import Final

from groupstorm.imports.observation import Observation

NOT_ENOUGH: Final = "NOT_ENOUGH_REPLICAS"


def partition_of(line: Observation) -> str:
    """The number of the group's partition of __consumer_offsets, as far as a coordinator's line says it."""
    said = line.fields.get("partition") or str(line.fields.get("place", "")).partition("partition=")[2]
    return str(said)


def append_details(line: Observation) -> tuple[str, str]:
    """The partition, and how many of its replicas are in sync and have to be, in the line's words."""
    fields = line.fields
    return (
        f"__consumer_offsets-{fields['partition']}",
        f"in sync: {fields['isr']}, needed: {fields['needed']}",
    )
