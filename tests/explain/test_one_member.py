"""The log of one member alone: its own part in the rebalances, what it cannot know, and whose log does."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from groupstorm.explain.explanation import Alone, Explanation, explain
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from tests.explain.explaining import names
from tests.explain.test_first_answers import answer, printed, sentence
from tests.imports.importing import LOGS

REAL = LOGS / "real"
ALL_LOGS = ("app-0", "app-1", "app-2")
#: Of a heartbeat of librdkafka that times out, as an application of .NET logs it, and what follows.
SILENT = "[Facility:REQTMOUT] svc#consumer-3 [thrd:GroupCoordinator]: GroupCoordinator/3: "


def of(tmp_path: Path, recording: str, *logs: str) -> Explanation:
    for log in logs:
        text = gzip.decompress((REAL / recording / f"{log}.log.gz").read_bytes())
        (tmp_path / f"{log}.log").write_bytes(text)
    import_logs(find_logs([str(tmp_path / f"{log}.log") for log in logs]), tmp_path / "out", Options())
    (found,) = explain(tmp_path / "out", frozenset({"orders-dynamic"}))
    return found


def test_what_one_member_knows_of_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its log by hand: at 31.552 s it leaves for the poll timeout and gets partitions again at 38.052 s; the
    other four times a heartbeat says that the group rebalances."""
    found = of(tmp_path, "kafka-4.3.1-aiokafka", "app-2")
    assert found.alone == Alone(
        "app-2", 4, {"poll-timeout": 1}, 0, (34_000, 23_000, 19_000, 21_000, 6_500_000)
    )
    said = printed(found, capsys)
    assert (
        "Only app-2 is heard: it was told 4 times that the group rebalances and left 1 time because it had "
        "not polled (poll-timeout). It was without partitions 5 times, for 6.6 s in all, 6.5 s at the "
        "longest."
    ) in said
    assert "add the log of the group's coordinator, or of its leaders" in said


@pytest.mark.parametrize(
    ("recording", "member", "told", "own"),
    [("kafka-4.3.1-librdkafka", "app-0", 8, 0), ("kafka-4.3.1-java", "app-2", 7, 1)],
)
def test_members_of_other_clients(tmp_path: Path, recording: str, member: str, told: int, own: int) -> None:
    alone = of(tmp_path, recording, member).alone
    assert alone is not None
    assert (alone.member, alone.told, sum(alone.own.values())) == (member, told, own)
    assert alone.without_us


@pytest.mark.parametrize("logs", [("server",), ("server", "app-2"), ALL_LOGS])
def test_whoever_else_is_heard_says_more(tmp_path: Path, logs: tuple[str, ...]) -> None:
    assert of(tmp_path, "kafka-4.3.1-aiokafka", *logs).alone is None


def test_heartbeats_without_an_answer_stand_beside_the_zombies_commits(tmp_path: Path) -> None:
    late = "Timed out HeartbeatRequest in flight (after 10110ms, timeout #0)\n"
    text = (
        f"2022-10-03 18:19:24.815 [Info] {SILENT}{late}2022-10-03 18:19:34.925 [Info] {SILENT}{late}"
        "2022-10-03 18:19:54.915 [Warning] [Facility:COMMITFAIL] svc#consumer-3 [thrd:main]: Offset commit "
        "(manual) failed for 1/1 partition(s) in join-state steady: Broker: Unknown member: "
        "orders[3]@17(Broker: Unknown member)\n"
    )
    said = sentence(answer(tmp_path, text), "zombie")
    assert "svc's commits were refused 1 time: UNKNOWN_MEMBER_ID" in said
    assert "svc's heartbeats had no answer 2 times in 10.1 s: REQUEST_TIMED_OUT" in said


def test_a_join_without_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = "Timed out JoinGroupRequest in flight (after 183921ms, timeout #0)\n"
    text = f"2019-06-19 11:42:44.455 [Notice] {SILENT}{late}"
    said = printed(answer(tmp_path, text), capsys)
    assert (
        "svc tried to join 1 time and got no generation: REQUEST_TIMED_OUT (No answer came in time)" in said
    )


def test_nothing_says_that_a_session_expired_of_members_that_are_unknown(tmp_path: Path) -> None:
    """More consumers than partitions, each with a rebalance timeout that is over: sarama says no more."""
    error = "Error: kafka server: The provided member is not known in the current generation.\n"
    found = answer(tmp_path, f"2016/03/26 08:10:05 {error}2016/03/26 08:10:09 {error}")
    assert names(found) == ["out-of-group"]
    assert "whether sessions expired, or members joined a round too late" in found.findings[0].match.unknown


def test_a_client_that_hears_nothing_says_that_its_session_is_over(tmp_path: Path) -> None:
    line = (
        "%4|{time}|SESSTMOUT|rdkafka#consumer-4| [thrd:main]: Consumer group session timed out (in "
        "join-state steady) after 10112 ms without a successful response from the group coordinator "
        "(broker 0, last error was Success): revoking assignment and rejoining group\n"
    )
    said = sentence(
        answer(tmp_path, line.format(time=1669773880.096) + line.format(time=1669773892.104)),
        "session-expired",
    )
    assert said == "1 member had no answer of the coordinator for a whole session (session-timeout)."


def test_a_member_that_does_not_poll_is_in_no_rebalance_meanwhile(tmp_path: Path) -> None:
    """It joins again 161 s after it has left: the round takes the half second of its join, and the partitions
    are away for both."""
    generation = "Generation{{generationId={}, memberId='a-1', protocol='range'}}"
    leaves = "consumer pro-actively leaving the group"
    lines = (
        ("10:00:00,000", "(Re-)joining group"),
        ("10:00:01,000", f"Successfully joined group with generation {generation.format(1)}"),
        ("10:00:01,100", f"Successfully synced group in generation {generation.format(1)}"),
        ("10:00:01,100", "Adding newly assigned partitions: t-0"),
        ("10:05:00,000", "consumer poll timeout has expired. This means the time between polls was too long"),
        (
            "10:05:00,001",
            "Resetting generation and member id due to: consumer pro-actively leaving the group",
        ),
        ("10:05:00,001", f"Request joining group due to: {leaves}"),
        ("10:07:41,000", "Lost previously assigned partitions t-0"),
        ("10:07:41,000", "(Re-)joining group"),
        ("10:07:41,500", f"Successfully joined group with generation {generation.format(3)}"),
        ("10:07:41,500", f"Successfully synced group in generation {generation.format(3)}"),
        ("10:07:41,500", "Adding newly assigned partitions: t-0"),
    )
    text = "".join(f"2026-03-04 {at} INFO [Consumer clientId=a, groupId=g] {said}\n" for at, said in lines)
    found = answer(tmp_path, text)
    assert found.history.rebalances[-1].lasted_us == 500_000
    assert names(found)[0] == "max-poll-interval"
    assert found.alone is not None
    assert "it left 1 time because it had not polled (poll-timeout)" in found.alone.sentence
    assert "It was without partitions 1 time, for 162 s in all" in found.alone.sentence


JAVA, MEMBER = "INFO [Consumer clientId=c-1, groupId=g]", "c-1-11111111-2222-3333-4444-555555555555"
#: The log of a leader that is alone in the end, from when it had not polled on.
LATE_LEADER = """\
2026-03-04 10:00:00,000 {java} consumer poll timeout has expired. This means the time between subsequent \
calls to poll() was longer than the configured max.poll.interval.ms
2026-03-04 10:05:00,000 {java} Lost previously assigned partitions invoices-0, invoices-1
2026-03-04 10:05:00,010 {java} (Re-)joining group
2026-03-04 10:05:03,000 {java} Successfully joined group with generation Generation{{generationId=8, \
memberId='{member}', protocol='range'}}
2026-03-04 10:05:03,010 {java} Finished assignment for group at generation 8: {{{member}=\
Assignment(partitions=[invoices-0, invoices-1])}}
2026-03-04 10:05:03,020 {java} Adding newly assigned partitions: invoices-0, invoices-1
"""


def test_a_member_was_without_its_partitions_before_anybody_is_known_to_own_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It left at 10:00:00 and had them again at 10:05:03.020; from then on they have an owner."""
    found = answer(tmp_path, LATE_LEADER.format(java=JAVA, member=MEMBER))
    assert found.alone is not None
    assert found.alone.without_us == (303_020_000,)
    said = printed(found, capsys)
    assert "It was without partitions 1 time, for 303 s in all" in said
    assert "Time without an owner from 2026-03-04 10:05 on, when owners are first known" in said


def test_a_leader_whose_log_has_the_owners_from_the_beginning_on_is_not_alone(tmp_path: Path) -> None:
    """It has its partitions for an hour before it is away for the same time."""
    text = LATE_LEADER.format(java=JAVA, member=MEMBER)
    begun, later = text.split("\n", 2)[2], text.replace("04 10:", "04 11:").replace("ation 8", "ation 9")
    assert answer(tmp_path, begun + later).alone is None
