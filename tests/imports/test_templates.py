"""Every line of the tables is found by its own template, and every kind of line has somebody who reads it."""

from __future__ import annotations

import re

import pytest

from groupstorm.imports.offsets_topic.meaning import MEMBER, MEMBER_GONE, MODERN_GONE, TARGET, TARGET_EPOCH
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.source import NOTED
from groupstorm.imports.templates import (
    APPEND_REFUSED,
    BARE_BEGINNING,
    BROKER_CONFIG,
    CATALOGUES,
    NUMBERS,
    TABLES,
    Template,
    table,
)
from groupstorm.imports.timeline.classic import ClassicRounds
from groupstorm.imports.timeline.modern import ModernGroup
from groupstorm.imports.timeline.other_clients import OtherMember
from groupstorm.imports.timeline.streams import StreamsThreads
from groupstorm.trace.events.group_states import Cause

#: Values that Kafka allows and that look like the text around them.
ODD = "g in state PreparingRebalance with old generation 7 (x)"
ROWS = [(writer, template) for writer, table in TABLES.items() for template in table]


def filled(template: Template, text: str) -> str:
    """The template's text with its holes filled: ``text``, or a number."""
    values = {"dot": "", **dict.fromkeys(NUMBERS, "-1")}
    return re.sub(r"\{(\w+)\}", lambda hole: values.get(hole[1], text), template.text)


@pytest.mark.parametrize("writer", TABLES)
def test_a_line_is_found_by_its_template(writer: Writer) -> None:
    for template in TABLES[writer]:
        message = filled(template, "a-b.c")
        found = CATALOGUES[writer].find(message)
        assert found is not None, template.where
        assert found.kind in (template.kind, *SAME_WORDS.get(template.kind, ())), template.where
        if writer is Writer.BARE:
            assert BARE_BEGINNING.match(message), template.where


#: Lines of one wording in which only the names differ.
SAME_WORDS = {"loaded-id": ("noted",), "modern-fenced-late": ("modern-fenced",)}


def test_a_group_may_have_any_name() -> None:
    template = next(row for _, row in ROWS if row.kind == "stabilized")
    found = CATALOGUES[Writer.BROKER].find(filled(template, ODD).replace("-1", "12"))
    assert found is not None
    assert (found.fields["group"], found.fields["generation"]) == (ODD, 12)


#: Kinds that records of __consumer_offsets have, and no line of a log.
RECORDS = {MEMBER, MEMBER_GONE, MODERN_GONE, TARGET, TARGET_EPOCH}


def test_every_kind_of_line_has_a_reader() -> None:
    read = {
        *ClassicRounds.HANDLERS,
        *ModernGroup.HANDLERS,
        *OtherMember.HANDLERS,
        *StreamsThreads.HANDLERS,
        NOTED,
        BROKER_CONFIG,  # of every group of the broker
        APPEND_REFUSED,  # of every group of the partition
    }
    kinds = {template.kind for _, template in ROWS}
    assert kinds <= read
    assert read - kinds == RECORDS


def test_every_reason_of_a_broker_has_a_cause_of_the_trace() -> None:
    assert {template.kind for template in table("broker_reasons")} <= {str(cause) for cause in Cause}
    of_clients = table("client_reasons")
    assert len({template.text for template in of_clients}) == len(of_clients)


def test_every_template_names_its_source() -> None:
    assert all(template.where for _, template in ROWS)
