"""Several gaps of un-owned time: from when on they count, which one is named, and the sentences on them."""

from __future__ import annotations

from groupstorm.figures import FiguresAccumulator
from groupstorm.figures.reasons import gap_sentence, longest_gap, reasons_sentences
from groupstorm.history.phases import Reason
from groupstorm.history.reasons import GapReasons, Reasons
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.schema import Source
from tests.figures.gap_rows import (
    G,
    Row,
    assigned,
    divided,
    ended,
    in_seconds,
    joined,
    of_rows,
    revoked,
    state,
)


def test_sentences_name_shares_and_put_variants_alike_together() -> None:
    static = divided((10, revoked("a", "close", "p0")), (35, assigned("a", "p0")))
    short = divided((10, revoked("a", "close", "p0")), (12, assigned("a", "p0")))
    said = reasons_sentences({"x": [static], "y": [short], "z": [divided()]})
    assert said[0] == ("Where un-owned time went: under x and y 100 % to processes on their way back.")
    assert said[1].startswith("Longest gap, under x: p0, 25.0 s from 10.0 s on: a closed;")
    assert longest_gap([short, static]) == static.longest
    assert reasons_sentences({"z": [divided()]}) == []


def test_what_was_before_figures_from_does_not_count_and_a_gap_is_cut_there() -> None:
    crash = (10, member_events.MemberCrashed(G, "a", "a", 1, ("p0",), (), ()))
    back = (20, assigned("a", "p0"))
    other = (12, member_events.MemberCrashed(G, "b", "b", 1, ("p1",), (), ()))
    back_too = (14, assigned("b", "p1"))
    found = divided(crash, other, back_too, back, detail='{"figures_from": 15000}')
    assert in_seconds(found) == {Reason.RESTART: 5}
    assert found.longest is not None
    assert (found.longest.from_us, found.longest.to_us) == (15_000_000, 20_000_000)


def test_a_slow_join_phase_before_figures_from_is_not_named() -> None:
    rows: list[Row] = [
        (10, revoked("a", "rebalance", "p0")),
        (10, state("PreparingRebalance", "new-member")),
        (50, joined("b")),
        *ended(50),
        (51, assigned("a", "p0")),
    ]
    assert divided(*rows).slowest == ("b", 40_000_000)
    assert divided(*rows, detail='{"figures_from": 60000}') == Reasons({}, None, None)
    assert divided(*rows, detail='{"figures_from": 45000}').slowest is None


def test_two_gaps_at_once_each_count_and_the_longer_one_is_named() -> None:
    found = divided(
        (10, revoked("a", "close", "p0")),
        (12, revoked("b", "close", "p1")),
        (20, assigned("a", "p0")),
        (25, assigned("b", "p1")),
        (30, revoked("a", "close", "p0")),
        (43, assigned("a", "p0")),
    )
    assert in_seconds(found) == {Reason.RESTART: 10 + 13 + 13}
    assert found.longest is not None
    assert (found.longest.partition, found.longest.from_us) == ("p1", 12_000_000), "of two, the earlier one"


def test_one_of_two_owners_may_go() -> None:
    found = divided(
        (10, assigned("b", "p0")),
        (11, revoked("a", "close", "p0")),
        (12, revoked("a", "close", "p0")),
        (20, revoked("b", "close", "p0")),
        (20, revoked("a", "close", "p1")),
        (23, assigned("b", "p0")),
    )
    assert in_seconds(found) == {Reason.RESTART: 3}


def test_a_partition_is_new_once_and_again_after_it_was_deleted() -> None:
    found = divided(
        (10, world_events.PartitionsCreated(G, ("t",), ("p0", "p2"))),
        (14, assigned("b", "p2")),
        (20, world_events.PartitionsDeleted(G, ("t",), ("p0",))),
        (30, revoked("a", "close", "p0")),
        (40, world_events.PartitionsCreated(G, ("t",), ("p0",))),
        (47, assigned("b", "p0")),
        (48, assigned("a", "p0")),
    )
    assert in_seconds(found) == {Reason.METADATA: 4 + 7}
    assert found.longest is not None
    assert gap_sentence(found.longest) == (
        "p0, 7.0 s from 40.0 s on: nobody had it, as it was new; the time went to members that have not "
        "refreshed their metadata yet (metadata.max.age.ms); b took it"
    )


def test_the_second_reason_is_named_from_a_quarter_on() -> None:
    def said(restart_s: float, rejoin_s: float, *more: Reasons) -> str:
        us = {Reason.RESTART: int(restart_s * 1e6), Reason.REJOIN: int(rejoin_s * 1e6)}
        return reasons_sentences({"x": [Reasons(us), *more]})[0]

    both = "75 % to processes on their way back and 25 % to members that learn of a round"
    assert both in said(30, 10)
    assert said(30.5, 9.5) == "Where un-owned time went: under x 76 % to processes on their way back."
    third = Reasons({Reason.SLOW: 12_000_000}, ("c", 5_000_000)), Reasons({}, ("d", 7_000_000)), Reasons()
    assert "under x 44 % to processes on their way back and 33 % to join phases that wait for a slow" in (
        said(16, 8, *third)
    )
    assert "slow member (d, 7.0 s at the longest)" in said(16, 8, *third)
    unnamed = reasons_sentences({"x": [Reasons({Reason.SLOW: 5})]})
    assert unnamed == ["Where un-owned time went: under x 100 % to join phases that wait for a slow member."]


def test_the_longest_gap_of_all_variants_is_told() -> None:
    short = divided((10, revoked("a", "close", "p0")), (12, assigned("b", "p0")))
    long = divided((10, revoked("a", "close", "p0")), (35, assigned("b", "p0")))
    for variants in ({"x": [short], "y": [short, long]}, {"y": [long, short], "x": [short]}):
        assert reasons_sentences(variants)[1].startswith("Longest gap, under y: p0, 25.0 s from")
    assert longest_gap([divided()]) is None


def test_an_open_gap_lasts_until_the_trace_ends_whatever_its_group_does_last() -> None:
    gaps = GapReasons()
    figures = FiguresAccumulator(listener=gaps)
    figures.add(0, Source.WORLD, world_events.ScenarioStarted(G, "{}", ("p0",), 0, 1))
    figures.add(0, Source.MEMBER, assigned("a", "p0"))
    figures.add(2_000_000, Source.MEMBER, revoked("a", "close", "p0"))
    assert figures.figures(9_000_000).unowned_partition_seconds == 7
    found = gaps.reasons()
    assert in_seconds(found) == {Reason.EMPTY: 7}
    [share, _] = reasons_sentences({"x": [found]})
    assert share == "Where un-owned time went: under x 100 % to a group without members."
    assert found.longest is not None
    assert "nobody took it" in gap_sentence(found.longest)


def test_a_gap_may_begin_with_the_first_row() -> None:
    found = of_rows(
        (0, world_events.ScenarioStarted(G, "{}", ("p0",), 0, 1)),
        (0, assigned("a", "p0")),
        (0, revoked("a", "close", "p0")),
        (3, assigned("a", "p0")),
    )
    assert in_seconds(found) == {Reason.RESTART: 3}
