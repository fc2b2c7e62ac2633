"""Settings that cannot go well together, said before any run, and values that would, by arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groupstorm.report.sweeps import sweep_contradictions
from groupstorm.storms.runs.contradictions import (
    cause_of,
    contradict_themselves,
    contradictions,
    outlasts_polls,
)
from groupstorm.storms.runs.load import member_load
from groupstorm.storms.runs.sweep import Point, Sweep, parse_axis
from groupstorm.storms.scenario.files import load
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import Step
from tests.storms.storms_in_memory import scenario

START = {"at_ms": 0, "do": "start"}


def settings(**written: Any) -> Settings:
    return scenario([START], **written).resolve(None, 0, {}).settings


def test_a_contradiction_names_the_variants_that_have_it_unless_all_do() -> None:
    slow = {"process_ms": {"p50": "20s", "p100": "8m"}, "record_rate": 0.002, "max.poll.records": 1}
    ten_minutes = {"max.poll.interval.ms": "10m"}
    variants = {"five": settings(**slow), "ten": settings(**slow, **ten_minutes)}
    assert contradictions(variants) == [
        "one record may take 480 s (process_ms), and max.poll.interval.ms is 300 s: the member leaves the "
        "group meanwhile (five)."
    ]
    assert contradictions({"five": variants["five"]})[0].endswith("meanwhile.")
    assert (outlasts_polls(variants["five"]), outlasts_polls(variants["ten"])) == (True, False)


def test_variants_that_differ_in_their_numbers_share_a_sentence() -> None:
    """Members leave for the same reason: one sentence, with the numbers of the first variant."""
    variants = {
        name: settings(
            process_ms={"p50": "20s", "p100": longest}, record_rate=0.002, **{"max.poll.records": 1}
        )
        for name, longest in {"eight": "8m", "nine": "9m", "four": "4m"}.items()
    }
    assert contradictions(variants) == [
        "one record may take 480 s (process_ms), and max.poll.interval.ms is 300 s: the member leaves the "
        "group meanwhile (eight; likewise, in other numbers, nine)."
    ]


def test_a_process_that_may_be_killed_while_it_closes_is_named() -> None:
    """0.5 s (stop_grace_ms) and up to 40 s of work are longer than 30 s; 30.5 s are as long as 30.5 s."""
    slow: dict[str, Any] = {
        "stop_grace_ms": {"exactly": 500},
        "drain_ms": {"p50": "10s", "p100": "40s"},
        "termination_grace_ms": "30s",
        "session.timeout.ms": "50s",
    }
    deploy = {"x": [Step(0, "start"), Step(60_000, "rolling-restart")]}
    assert contradictions({"x": settings(**slow)}, deploy) == [
        "a process may need 40.5 s from SIGTERM until it closes its consumer (stop_grace_ms, drain_ms) and "
        "is killed after 30.0 s (termination_grace_ms): it sends no LeaveGroup then, and its partitions wait "
        "for session.timeout.ms (50.0 s)."
    ]
    assert contradictions({"x": settings(**slow)}, {"x": [Step(0, "start"), Step(60_000, "crash")]}) == []
    enough = slow | {"drain_ms": {"exactly": "30s"}, "termination_grace_ms": 30_501}
    assert contradictions({"x": settings(**enough)}, deploy) == []
    assert contradictions({"x": settings(**enough | {"termination_grace_ms": 30_500})}, deploy) != []
    static = slow | {"group.instance.id": "ordinal"}
    [said] = contradictions({"x": settings(**static)}, deploy)
    assert said.endswith(
        "it does not commit at its end then, and what it has done since its last commit is done again."
    )
    assert contradictions({"x": settings(**static, record_rate=0)}, deploy) == [], (
        "they never send LeaveGroup"
    )


def test_a_slow_record_counts_with_all_its_retries_and_pauses() -> None:
    """20 s, and 1,000 times 5 s of pause and 20 s of work: 25,020 s."""
    record = {"partition": 0, "at": "2m", "takes": "20s", "retries": 1000, "pause": "5s"}
    [said] = contradictions({"x": settings(slow_records=[record])})
    assert said.startswith("a slow record of topic-0-0 takes 6 h 57 min (slow_records)")


def test_a_record_that_ends_its_readers_is_named_with_its_partition() -> None:
    records = [{"partition": number, "at": "2m", "takes": "1s", "then": "crash"} for number in (7, 8)]
    assert contradictions({"x": settings(slow_records=records)}) == [
        "a record of topic-0-7 and of topic-0-8 ends every process that reads it (slow_records, then: "
        "crash): no setting of the group gets it past that."
    ]


def test_a_full_batch_is_named_with_the_batch_that_fits() -> None:
    """500 records of 605 ms are 302.5 s; 300 s have room for 495."""
    [said] = contradictions({"x": settings(process_ms=605, record_rate=0.1)})
    assert "a full batch of 500 records takes 302 s in the mean" in said
    assert "495 records (max.poll.records) would fit" in said
    assert contradictions({"x": settings(process_ms=605, record_rate=0.1, client_profile="franz-go")}) == []
    [said] = contradictions({"x": settings(process_ms=600, record_rate=0.1)})
    assert "499 records (max.poll.records) would fit" in said, "500 take all of the interval"


def test_work_that_outlasts_the_session_of_a_cooperative_java_consumer_is_named() -> None:
    """500 records of 120 ms are 60 s, the session is 45 s. Eager members have nothing to do meanwhile."""
    slow = {"process_ms": 120, "record_rate": 0.1, "partition.assignment.strategy": ["cooperative-sticky"]}
    [said] = contradictions({"x": settings(**slow)})
    assert said.startswith(
        "a full batch of 500 records takes 60.0 s in the mean, and session.timeout.ms is 45.0 s: "
    )
    assert "sends no heartbeat until then, so a rebalance throws it out" in said
    assert said.endswith("(it needs Apache Kafka 4.0 (brokers) and kafka-clients 4.0 or later).")
    for other in (
        {"session.timeout.ms": 61_000},
        {"max.poll.records": 374},
        {"partition.assignment.strategy": ["range", "cooperative-sticky"]},
        {"client_profile": ["librdkafka"]},
    ):
        assert contradictions({"x": settings(**slow | other)}) == []
    del slow["partition.assignment.strategy"]
    assert contradictions({"x": settings(**slow, **{"group.protocol": "consumer"})}) == []


def test_the_cause_is_the_work_that_outlasts_the_timeout_of_the_finding() -> None:
    """A record of 8 min outlasts both timeouts: the finding says which one threw members out."""
    settings = {"process_ms": {"exactly": "8m"}, "partition.assignment.strategy": ["cooperative-sticky"]}
    what = scenario([START], record_rate=0.001, **settings).resolve(None, 0, {})
    silent = cause_of(what, "never at rest: 18 times a member sent no heartbeat for session.timeout.ms")
    left = cause_of(what, "livelock: 13 times a member left because max.poll.interval.ms had passed")
    assert ("session.timeout.ms is" in silent, "max.poll.interval.ms is" in silent) == (True, False)
    assert ("session.timeout.ms is" in left, "max.poll.interval.ms is" in left) == (False, True)
    assert cause_of(what, "settled late: 13 minutes after the last step (settle_timeout_ms)") == ""


def test_members_without_a_partition_are_counted() -> None:
    assert contradictions({"x": settings(members=30, partitions=10)}) == [
        "30 members on 10 partitions: 20 own nothing."
    ]


@pytest.mark.parametrize(
    ("given", "idle", "enough"),
    [
        ({"partition.assignment.strategy": ["range"]}, "which range deals out topic by topic: 3", None),
        ({"group.protocol": "consumer", "group.remote.assignor": "range"}, "which range deals", None),
        ({"partition.assignment.strategy": ["roundrobin"]}, "", 18),
        ({"group.protocol": "consumer"}, "", 18),
    ],
)
def test_range_deals_out_topic_by_topic(given: dict[str, Any], idle: str, enough: int | None) -> None:
    """With range the first members get a partition of both topics, however many there are: 20 records a
    second, of which they process 11. The others get nothing."""
    topics = {"topic_partitions": {"a": 12, "b": 6}, "record_rate": 10, "process_ms": 90}
    fifteen = contradictions({"x": settings(members=15, **topics, **given)})
    assert [one for one in fifteen if "own nothing" in one and idle in one] == (fifteen[:1] if idle else [])
    assert bool(idle) == any("own nothing" in one for one in fifteen)
    assert member_load(settings(members=6, **topics, **given)).enough_members() == enough


def test_threads_of_kafka_streams_without_a_task_and_with_too_much_to_do() -> None:
    """Four tasks of three topics each for six threads. A thread does 1,000 records a second, as many as come
    in 10 of 40 partitions: that is too much for four threads, and five have 8 each."""
    streams = {"application": "streams", "num.stream.threads": 2, "record_rate": 100}
    joined = settings(members=3, topics=3, partitions=4, joins=True, **streams)
    assert contradictions({"x": joined}) == ["6 threads (3 instances with 2 each) on 4 tasks: 2 own nothing."]
    busy = settings(members=2, partitions=40, **streams)
    assert contradictions({"x": busy}) == [
        "4,000 records a second arrive, and 4 threads process at most 4,000: the lag grows; 5 threads "
        "or less than 1 ms of work on a record would keep up."
    ]
    assert member_load(busy).enough_threads() == 3


def test_more_records_than_all_members_process_and_more_than_one_owner_does() -> None:
    """Enough is enough for whoever owns most partitions: of 35, four members have 9 at most, and two
    have 18, at 100 records a second each; of 16 at one in 50 s, eight have 2, and four have 4.
    The owner of the hot partition has another one, 600 and 600 / 23 records a second."""
    assert contradictions({"x": settings(members=2, partitions=35)}) == [
        "3,500 records a second arrive, and 2 members process at most 2,000: the lag grows; 4 members "
        "or less than 0.555 ms of work on a record would keep up."
    ]
    few = {"record_rate": 0.02, "process_ms": 20_000, "max.poll.records": 1}
    assert contradictions({"x": settings(members=4, partitions=16, **few)}) == [
        "0.32 records a second arrive, and 4 members process at most 0.2: the lag grows; 8 members or "
        "less than 12,500 ms of work on a record would keep up."
    ]
    hot = {"record_skew": {"hot": {"partitions": 1, "share": "50%"}}, "process_ms": 2, "record_rate": 50}
    assert contradictions({"x": settings(members=12, partitions=24, **hot)}) == [
        "one partition gets 600 records a second, and its owner processes at most 500: its lag grows, "
        "whoever owns it; less than 1.59 ms of work on a record would keep up."
    ]
    every = {"process_ms": 12, "record_rate": 200}
    assert contradictions({"x": settings(members=12, partitions=36, **every)}) == [
        "each partition gets 200 records a second, and its owner processes at most 83: its lag grows, "
        "whoever owns it; less than 1.66 ms of work on a record would keep up."
    ]


def test_a_commit_after_each_record_takes_a_round_trip_of_the_members_time() -> None:
    """1 ms of work and twice 10 ms of network: 47.6 records a second, and 500 of them in 10.5 s."""
    by_hand = {"commits": "record", "net_latency_ms": 10, "process_ms": 1, "record_rate": 100}
    assert contradictions({"x": settings(members=1, partitions=1, **by_hand)}) == [
        "each partition gets 100 records a second, and its owner processes at most 48: its lag grows, "
        "whoever owns it."
    ]
    short = {**by_hand, "record_rate": 1, "max.poll.interval.ms": 9_000}
    [sentence] = contradictions({"x": settings(**short)})
    assert sentence.startswith("a full batch of 500 records takes 10.5 s in the mean")
    assert "428 records (max.poll.records) would fit" in sentence


def test_a_slow_machine_is_told_from_a_group_that_is_too_small() -> None:
    """Nine of ten members do 1,000 records a second, one 333; each gets 500, then 940 of 9,400 in all."""
    slow = {"machines": [{"members": [0], "factor": 3}], "process_ms": 1, "members": 10}
    assert contradictions({"x": settings(**slow, partitions=50, record_rate=100)}) == [
        "the slowest member processes at most 333 records a second, and 500 may arrive in its partitions: "
        "their lag grows, however much time the others have."
    ]
    [sentence] = contradictions({"x": settings(**slow, partitions=100, record_rate=94)})
    assert sentence.startswith("9,400 records a second arrive, and 10 members process at most 9,333: ")
    assert "less than 1.06 ms of work on a record by the slowest member would keep up" in sentence  # 1/940 s
    assert contradictions({"x": settings(**slow, partitions=50, record_rate=60)}) == []
    [sentence] = contradictions({"x": settings(**slow, partitions=10, record_rate=400)})
    assert sentence.startswith("the slowest member processes at most 333 records a second, and 400 may")
    [sentence] = contradictions({"x": settings(**slow, partitions=10, record_rate=1200)})
    assert "its owner processes at most 1,000: its lag grows, whoever owns it" in sentence


def of_steps(*steps: dict[str, Any], **written: Any) -> list[str]:
    resolved = scenario([START, *steps], **written).resolve(None, 0, {})
    return contradictions({"x": resolved.settings}, {"x": resolved.steps})


def test_members_and_partitions_that_steps_add_are_counted() -> None:
    """4,000 records a second: two members process 2,000, and four more 6,000."""
    more = {"at_ms": 60_000, "do": "add", "count": 4}
    wider = {"at_ms": 60_000, "do": "add-partitions", "topic": "topic-0", "partitions": 80}
    assert of_steps(members=2, partitions=40) == [
        "4,000 records a second arrive, and 2 members process at most 2,000: the lag grows; 5 members "
        "or less than 0.5 ms of work on a record would keep up."
    ]
    assert of_steps(more, members=2, partitions=40) == []
    assert of_steps(more, wider, members=2, partitions=40) == [
        "8,000 records a second arrive, and 6 members process at most 6,000: the lag grows; 9 members "
        "or less than 0.714 ms of work on a record would keep up."
    ]
    assert of_steps(more, members=8, members_per_pod=2, partitions=12, record_rate=1) == [
        "16 members (8 pods with 2 each) on 12 partitions: 4 own nothing."
    ]


def test_nothing_is_processed_without_records() -> None:
    """Only the fault that needs no record is left of three: the application does not poll."""
    slow = {"process_ms": "20m", "slow_records": [{"every": 10, "takes": "20m"}], "poll_interval_ms": "10m"}
    named = contradictions({"x": settings(record_rate=100, **slow)})
    assert [word for word in ("poll_interval_ms", "process_ms", "slow_records") if word in str(named)] == [
        "poll_interval_ms", "process_ms", "slow_records"
    ]  # fmt: skip
    assert contradictions({"x": settings(record_rate=0, **slow)}) == [
        "the application may call poll() only every 10 min (poll_interval_ms), and max.poll.interval.ms is "
        "300 s: the member leaves the group meanwhile."
    ]


@pytest.mark.parametrize("kind", ["recreate", "blue-green", "drain-node", "autoscale"])
def test_a_step_that_does_not_know_of_a_rolling_update_under_way_is_named(kind: str) -> None:
    """Eight pods, two at a time, 40 s each: 160 s at the most, from 60 s on."""
    own: dict[str, dict[str, Any]] = {"drain-node": {"members": [0]}, "autoscale": {"for_ms": 1_000}}
    durations = {"start_ms": {"exactly": "30s"}, "ready_ms": {"exactly": "5s"}, "stop_grace_ms": "0s"}
    pods = {"members": 8, "partitions": 8, "record_rate": 1, "deployment": "deployment", "max_surge": 2}
    rolling = {"at_ms": 60_000, "do": "rolling-restart"}

    def said(at_ms: int) -> list[str]:
        step = {"at_ms": at_ms, "do": kind, **own.get(kind, {})}
        return of_steps(rolling, step, max_unavailable=0, drain_ms={"exactly": "5s"}, **pods, **durations)

    assert said(219_000) == [
        f"{kind} (219 s after the start) does not know of a rolling update under way, and rolling-restart "
        "(60.0 s) may take up to 160 s: pods are replaced otherwise than by Kubernetes."
    ]
    assert said(221_000) == said(50_000) == []


@pytest.mark.parametrize(
    ("written", "members", "concurrency", "work_ms"),
    [
        # 35 partitions of 100: 9 a member are 900 of the 1,000 that it does; 18 are 1,800
        ({"members": 2, "partitions": 35}, 4, 2, 1 / 1.8),
        # 480 and 23 times 20.87: with one more partition the busiest one's owner has more than its 500
        ({"members": 6, "partitions": 24, "record_rate": 40, "process_ms": 2,
          "record_skew": {"hot": {"partitions": 1, "share": "50%"}}}, 24, 2, 1 / 0.5426),
    ],
)  # fmt: skip
def test_values_that_are_enough_by_arithmetic(
    written: dict[str, Any], members: int, concurrency: int, work_ms: float
) -> None:
    load = member_load(settings(**written))
    assert load.enough_members() == members
    assert load.enough_concurrency() == concurrency
    assert load.record_ms() == pytest.approx(work_ms, rel=1e-3)


def test_a_sweep_names_each_contradiction_once_with_the_points_that_have_it() -> None:
    preset = load("rolling-deploy")
    over = ("members=6,20,40", "partitions=12,30", "variant=eager,static")
    sweep = Sweep("rolling-deploy", None, tuple(parse_axis(text, preset) for text in over), 0, 1, {})
    assert sweep_contradictions(sweep, sweep.points()) == [
        "with members=20, partitions=12: 20 members on 12 partitions: 8 own nothing; likewise, in other "
        "numbers, with members=40."
    ]
    everywhere = Sweep("rolling-deploy", None, (parse_axis("variant=eager,static", preset),), 0, 1, {})
    everywhere = replace(everywhere, overrides={"members": 40, "partitions": 12})
    assert sweep_contradictions(everywhere, everywhere.points()) == [
        "40 members on 12 partitions: 28 own nothing."
    ]
    crossed = [Point(("6", "12", "eager"), {"members": 40, "partitions": 12, "variant": "eager"})]
    crossed += [Point(("40", "12", "static"), {"members": 40, "partitions": 12, "variant": "static"})]
    assert sweep_contradictions(sweep, [*crossed, sweep.points()[0]])[0].startswith(
        "with members=6, partitions=12, variant=eager; members=40, partitions=12, variant=static: 40 members"
    )


def test_an_autoscaler_that_no_step_lets_work_is_named() -> None:
    [idle] = of_steps(autoscaler="hpa")
    assert idle.startswith("autoscaler: hpa scales nothing here")
    assert not of_steps({"at_ms": 1_000, "do": "autoscale", "for_ms": 60_000}, autoscaler="hpa")


def test_the_load_of_steps_is_their_last_rate_and_the_hot_partition_is_not_each() -> None:
    """The mean until a burst was over, times the partitions that come later, arrives at no time."""
    burst = [{"at": "5m", "factor": 4}, {"at": "9m", "factor": 1}]
    share = {"group.protocol": "share", "members": 6, "partitions": 4, "process_ms": 580, "record_rate": 3}
    grows = {"x": [Step(0, "start"), Step(60_000, "add-partitions", topic="topic-0", partitions=8)]}
    *_, sentence = contradictions({"x": settings(**share, record_rate_over_time=burst)}, grows)
    assert sentence.startswith("24 records a second arrive, and 6 members process at most 10: the lag grows")
    assert "16 members" in sentence
    hot = {"record_skew": {"hot": {"partitions": 1, "share": "40%"}}, "process_ms": 2000, "record_rate": 1}
    *_, sentence = contradictions({"x": settings(members=6, partitions=6, **hot)})
    assert sentence.startswith("one partition gets 2.4 records a second, and its owner processes at most 0.5")


def test_a_share_groups_hot_partition_has_few_readers_however_idle_the_others_are() -> None:
    """Each partition of four has two readers of eight: 2.78 records a second."""
    hot = {"record_skew": {"hot": {"partitions": 1, "share": "50%"}}, "process_ms": 720, "record_rate": 1.5}
    share = settings(**{"group.protocol": "share", "max.poll.records": 1}, members=8, partitions=4, **hot)
    assert contradictions({"x": share}) == [
        "one partition gets 3 records a second, and its 2 readers process at most 2.78: its lag grows; "
        "9 members or less than 666 ms of work on a record would keep up."
    ]
    assert contradict_themselves(share, ())
