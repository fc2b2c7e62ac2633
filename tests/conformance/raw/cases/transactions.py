"""Offsets that are committed inside a transaction (KIP-98, KIP-447)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from tests.conformance.raw.openings import each
from tests.conformance.raw.requests import (
    add_offsets,
    commit_from_outside,
    commit_in_transaction,
    delete_groups,
    describe,
    end_transaction,
    fetch_offsets,
    find_transaction_coordinator,
    init_producer,
)
from tests.conformance.raw.steps import OK, Again, Case, Steps, ask, case


def _begin(who: str) -> Steps:
    """A producer that has told which group its transaction is about."""
    return (
        Again(who, find_transaction_coordinator(), {"coordinators": [{"error_code": "NONE"}]}),
        Again(who, init_producer(), OK),
        ask(who, add_offsets(), OK),
    )


def _found(offset: int, code: Error = Error.NONE) -> Mapping[str, Any]:
    partition = {"committed_offset": offset, "error_code": code.name}
    return {"groups": [{"topics": [{"partitions": [partition]}]}]}


def _ended(name: str, about: str, *, commits: bool, offset: int) -> Case:
    return case(
        name,
        about,
        ask("a", commit_from_outside(1), {}),
        _begin("a"),
        ask("a", commit_in_transaction(7), each(Error.NONE)),
        ask("a", fetch_offsets(0), _found(1)),
        ask("a", fetch_offsets(0, require_stable=True), _found(-1, Error.UNSTABLE_OFFSET_COMMIT)),
        ask("a", end_transaction(commits=commits), OK),
        Again("a", fetch_offsets(0, require_stable=True), _found(offset)),
        ask("a", fetch_offsets(0), _found(offset)),
    )


CASES = (
    _ended(
        "transaction-commits-offsets",
        "pending until the transaction ends; meanwhile UNSTABLE_OFFSET_COMMIT if stable offsets are required",
        commits=True,
        offset=7,
    ),
    _ended("transaction-aborts-offsets", "the offset committed before stays", commits=False, offset=1),
    case(
        "transaction-of-a-group-that-there-is-not",
        "pending offsets alone make no group",
        _begin("a"),
        ask("a", commit_in_transaction(7), each(Error.NONE)),
        ask("a", end_transaction(commits=True), OK),
        Again("a", fetch_offsets(0, require_stable=True), _found(7)),
        ask("a", describe(), {"groups": [{"group_state": "Empty"}]}),
        ask("a", delete_groups(), {"results": [{"error_code": "NONE"}]}),
    ),
)
