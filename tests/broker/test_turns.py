"""No request keeps the broker from others: a long one is carried out in turns."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from groupstorm.broker.apis import APIS
from groupstorm.broker.requests import WORK_PER_TURN
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import (
    CodecError,
    decode_in_turns,
    decoder,
    encode_in_turns,
    encoder,
    request_type,
    response_types,
)
from groupstorm.turns import at_once
from tests.broker import wire
from tests.broker.asking import (
    alter_configs,
    consumer_join,
    create,
    join,
    metadata,
    produce,
    share_beat,
    topic_id,
)
from tests.broker.driver import Driver
from tests.broker.long_requests import LONG, MANY, send_long
from tests.broker.random_messages import random_message
from tests.broker.share_members import GROUP
from tests.broker.streams_members import streams_join, subtopology, topology
from tests.broker.wire import milliseconds
from tests.soaking import one_in


@pytest.mark.parametrize("api", one_in(3, LONG))
def test_another_client_is_answered_between_the_turns(api: str) -> None:
    """Each item is a unit of work at least, three times as many as a turn carries out."""
    driver = Driver({"auto.create.topics.enable": "false"}, {"orders": 1})
    connection = send_long(driver, api)
    turns = 1
    while connection not in driver.answers:
        other = driver.send(wire.API_VERSIONS, 0)
        assert driver.answers[other].error_code == Error.NONE
        assert driver.broker.next_deadline() == driver.now_ms, "the rest of the request waits for its turn"
        driver.collect(driver.broker.fire(driver.now_ms))
        turns += 1
    assert turns > MANY // WORK_PER_TURN
    assert str(driver.answers[connection]).count("error_code=") >= MANY


def _has_quota(driver: Driver, user: str) -> bool:
    asked = {"entity_type": "user", "match_type": 0, "match": user}
    other = driver.send(wire.DESCRIBE_QUOTAS, 1, components=(asked,), strict=True)
    return other in driver.answers and bool(driver.answers[other].entries)  # many take turns to describe


def _has_credentials(driver: Driver, user: str) -> bool:
    other = driver.send(wire.DESCRIBE_SCRAM, 0, users=({"name": user},))
    return bool(driver.answers[other].results[0].error_code == Error.NONE)


@pytest.mark.parametrize(
    ("api", "is_changed"),
    [("AlterClientQuotas", _has_quota), ("AlterUserScramCredentials", _has_credentials)],
)
def test_others_meet_the_changes_of_a_long_request_one_after_the_other(
    api: str, is_changed: Callable[[Driver, str], bool]
) -> None:
    driver = Driver()
    connection = send_long(driver, api, validate_only=False)
    seen: set[tuple[bool, bool]] = set()
    while connection not in driver.answers and (True, False) not in seen:
        seen.add((is_changed(driver, "name-0"), is_changed(driver, f"name-{MANY - 1}")))
        driver.collect(driver.broker.fire(driver.now_ms))
    assert (True, False) in seen


def test_the_client_of_a_long_request_goes_away() -> None:
    """The broker finishes the request, and answers nobody."""
    driver = Driver()
    connection = send_long(driver, "FindCoordinator")
    driver.broker.forget(connection, driver.now_ms)
    driver.advance(0)
    assert connection not in driver.answers
    assert driver.broker.next_deadline() != driver.now_ms


def test_a_topic_is_deleted_between_two_turns_of_a_request_about_it() -> None:
    driver = Driver({}, {"orders": 1})
    connection = send_long(driver, "ListOffsets", 5)
    deleted = driver.ask(wire.DELETE_TOPICS, 5, topic_names=("orders",)).responses[0]
    driver.advance(0)
    errors = {Error(one.error_code) for one in driver.answers[connection].topics[0].partitions}
    assert (deleted.error_code, errors) == (Error.NONE, {Error.UNKNOWN_TOPIC_OR_PARTITION})


@pytest.mark.parametrize("wakes", ["a record", "the end of its wait"])
def test_a_share_fetch_of_many_partitions_that_waited_is_answered_in_turns(wakes: str) -> None:
    driver = Driver({}, {"orders": MANY})
    alter_configs(driver, 1, ("share.auto.offset.reset", 0, "earliest"), kind=GROUP, name="g")
    driver.ask(wire.SHARE_GROUP_HEARTBEAT, 1, **share_beat("g", "a", 0, "orders"))
    listed = tuple({"partition_index": number, "acknowledgement_batches": ()} for number in range(MANY))
    topics = ({"topic_id": topic_id(driver), "partitions": listed},)
    limits = {"min_bytes": 1, "max_bytes": 1_000_000, "max_records": 100, "batch_size": 100}
    who = {"group_id": "g", "member_id": "a"}
    fields = who | limits | {"topics": topics, "share_session_epoch": 0, "forgotten_topics_data": ()}
    waits = driver.send(78, 2, **fields, max_wait=milliseconds(1_000))
    driver.advance(0)
    assert waits not in driver.answers
    if wakes == "a record":
        produce(driver, 9, MANY - 1, wire.batch([b"x"]))
    else:
        driver.now_ms += 1_000
        driver.collect(driver.broker.fire(driver.now_ms))
    assert waits not in driver.answers
    assert driver.broker.has_unfinished
    driver.advance(0)
    answered = driver.answers[waits].responses
    acquired = [one.partition_index for one in answered[0].partitions if one.acquired_records]
    assert acquired == ([MANY - 1] if wakes == "a record" else [])


@pytest.mark.parametrize("api_key", one_in(9, APIS))
def test_messages_in_turns_are_the_same_bytes(api_key: int) -> None:
    draw = random.Random(7)
    version = APIS[api_key].max_version
    for kind in (request_type(api_key, version), response_types(api_key, version).root):
        for _ in range(20):
            message = random_message(kind, draw)
            data = b"".join(encoder(kind)(message))
            assert b"".join(at_once(encode_in_turns(message))) == data
            assert at_once(decode_in_turns(kind, b"..." + data, 3)) == decoder(kind)(b"..." + data, 3)


@pytest.mark.parametrize("cut", range(0, 36, 3))
def test_a_long_request_that_ends_too_early_is_refused(cut: int) -> None:
    topics = tuple({"name": f"name-{n}"} for n in range(4))
    data = wire.request_body(wire.METADATA, 4, topics=topics, allow_auto_topic_creation=True)
    assert cut < len(data)
    with pytest.raises(CodecError):
        at_once(decode_in_turns(request_type(wire.METADATA, 4), data[:cut], 0))


# limits


def test_a_request_creates_ten_thousand_partitions_at_most() -> None:
    """ReplicationControlManager.MAX_PARTITIONS_PER_BATCH, its sentence and its sum: -1 counts as
    num.partitions, a number below 1 as none; the request is refused as a whole."""
    driver = Driver({"num.partitions": "5000"})
    numbers = {"a": 5_000, "b": -1, "c": 1, "d": 0}
    topics = tuple(
        {"name": name, "num_partitions": number, "replication_factor": 1} for name, number in numbers.items()
    )
    refused = driver.ask(wire.CREATE_TOPICS, 5, topics=topics).topics
    sentence = "Excessively large number of partitions per request."
    assert {(one.error_code, one.error_message) for one in refused} == {(Error.POLICY_VIOLATION, sentence)}
    assert not list(driver.broker.state.topics)


@pytest.mark.parametrize(("partitions", "is_made"), [(5_000, True), (5_001, False)])
def test_metadata_creates_as_many_as_one_request_may(partitions: int, is_made: bool) -> None:
    """Kafka creates the unknown topics of a Metadata with one CreateTopics (AutoTopicCreationManager): all of
    them or none, and the answer is the same."""
    driver = Driver({"num.partitions": str(partitions)}, {"known": 1})
    connection = driver.send(
        wire.METADATA,
        4,
        topics=tuple({"name": name} for name in ("a", "known", "b")),
        allow_auto_topic_creation=True,
    )
    driver.advance(0)
    found = [Error(one.error_code) for one in driver.answers[connection].topics]
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert found == [unknown, Error.NONE, unknown]
    assert [one.error_code for one in metadata(driver, 4, "a", allow_auto_topic_creation=False)] == [
        Error.NONE if is_made else unknown
    ]


def _synced(metadata_bytes: int) -> tuple[Error, int]:
    """A group of one, and what its log kept."""
    driver = Driver({"group.initial.rebalance.delay.ms": "0", "message.max.bytes": "100000"})
    protocols = ({"name": "range", "metadata": b"x" * metadata_bytes},)
    connection = join(driver, 3, protocols=protocols)
    driver.advance(0)
    joined = driver.answers[connection]
    synced = driver.ask(
        wire.SYNC_GROUP,
        2,
        group_id="g",
        member_id=joined.member_id,
        generation_id=joined.generation_id,
        assignments=(),
    )
    return Error(synced.error_code), len(driver.broker.coordinator.snapshot())


def test_a_group_whose_record_is_too_large_is_not_written() -> None:
    """A batch of the offsets topic holds message.max.bytes. RecordTooLargeException is UNKNOWN_SERVER_ERROR
    for the leader's SyncGroup (GroupMetadataManager.appendGroupMetadataErrorToResponseError)."""
    assert _synced(99_000) == (Error.NONE, 1)
    error, _ = _synced(101_000)
    assert error is Error.UNKNOWN_SERVER_ERROR


def test_a_commit_that_does_not_fit_into_one_batch_is_refused() -> None:
    driver = Driver({"message.max.bytes": "10000"}, {"orders": MANY})
    connection = send_long(driver, "OffsetCommit", 8)
    driver.advance(0)
    errors = [one.error_code for topic in driver.answers[connection].topics for one in topic.partitions]
    assert set(errors) == {Error.UNKNOWN_SERVER_ERROR}
    assert not driver.broker.coordinator.snapshot()


@pytest.mark.parametrize(("count", "is_at_once"), [(1, True), (2 * WORK_PER_TURN, False)])
def test_many_names_of_a_subscription_are_looked_at_in_turns(count: int, is_at_once: bool) -> None:
    """The request is short enough to be decoded in one turn."""
    driver = Driver()
    names = tuple(f"name-{number}" for number in range(count))
    connection = driver.send(wire.CONSUMER_GROUP_HEARTBEAT, 1, **consumer_join("g", "a", *names))
    assert (connection in driver.answers) is is_at_once
    driver.advance(0)
    assert driver.answers[connection].error_code == Error.NONE


# regular expressions


def _heartbeat(driver: Driver, regex: str) -> Any:
    joins = consumer_join("g", "a", subscribed_topic_names=(), subscribed_topic_regex=regex)
    return driver.ask(wire.CONSUMER_GROUP_HEARTBEAT, 1, **joins)


def test_other_requests_are_served_while_a_regular_expression_is_resolved() -> None:
    """Its program has 17,105 instructions, RE2 may look at all of them for each of a name's 249 characters:
    2,000 such steps are a unit of work, so that each topic is beyond a turn."""
    driver = Driver({}, {f"{'x' * 240}-{number}": 1 for number in range(5)})
    assert _heartbeat(driver, "(.?){1000}(.?){900}").error_code == Error.NONE
    turns = 0
    while driver.broker.next_deadline() == driver.now_ms:
        other = driver.send(wire.API_VERSIONS, 0)
        assert driver.answers[other].error_code == Error.NONE
        driver.collect(driver.broker.fire(driver.now_ms))
        turns += 1
    assert turns >= 4
    group = driver.ask(wire.CONSUMER_GROUP_DESCRIBE, 1, group_ids=("g",)).groups[0]
    assert group.group_epoch > 1, "the expression matches topics"


@pytest.mark.parametrize("regex", ["(" * 10_000 + "x" + ")" * 10_000, "[" * 30_000, "(.*a)|" * 100])
def test_long_expressions_take_no_time(regex: str) -> None:
    """They took minutes: groups by their number, unclosed classes by the square of it."""
    driver = Driver({}, {f"{'x' * 240}-{number}": 1 for number in range(100)})
    answer = _heartbeat(driver, regex)
    assert answer.error_code == (Error.INVALID_REGULAR_EXPRESSION if "[" in regex else Error.NONE)
    driver.advance(0)


def test_an_expression_with_too_large_a_program_is_refused() -> None:
    answer = _heartbeat(Driver(), r"(\pL?){300}")
    assert (Error(answer.error_code), answer.error_message) == (
        Error.INVALID_REGULAR_EXPRESSION,
        r"SubscribedTopicRegex `(\pL?){300}` is not a valid regular expression:"
        " pattern too large - compile failed.",
    )


# groups


def _names(topics: int) -> tuple[str, ...]:
    return tuple(f"topic-{number}" for number in range(topics))


def _beat(driver: Driver, member: str, topics: int, group: str = "g") -> int:
    return driver.send(wire.CONSUMER_GROUP_HEARTBEAT, 1, **consumer_join(group, member, *_names(topics)))


def _share_beat(driver: Driver, member: str, topics: int, group: str = "g") -> int:
    return driver.send(wire.SHARE_GROUP_HEARTBEAT, 1, **share_beat(group, member, 0, *_names(topics)))


def _streams_beat(driver: Driver, member: str, topics: int, group: str = "g") -> int:
    """Each topic has a subtopology of its own."""
    whole = topology(*(subtopology(f"topic-{number}", name=str(number)) for number in range(topics)))
    return driver.send(wire.STREAMS_GROUP_HEARTBEAT, 1, **streams_join(group, member=member, topology=whole))


_Beat = Callable[..., int]


def _with_topics() -> Driver:
    kinds = ("consumer", "share", "streams")
    options = {f"group.{kind}.assignment.interval.ms": "0" for kind in kinds}
    options["group.streams.initial.rebalance.delay.ms"] = "0"
    return Driver(options, {f"topic-{number}": 1 for number in range(MANY)})


@pytest.mark.parametrize("beat", [_beat, _share_beat, _streams_beat])
def test_other_groups_are_served_between_the_turns_of_a_heartbeat_and_its_own_group_waits(
    beat: _Beat,
) -> None:
    driver = _with_topics()
    long = beat(driver, "a", MANY)
    assert driver.answers[beat(driver, "x", 1, "other")].error_code == Error.NONE
    second = beat(driver, "b", MANY)
    while long not in driver.answers:
        assert second not in driver.answers
        driver.collect(driver.broker.fire(driver.now_ms))
    driver.advance(0)
    assert driver.answers[second].member_epoch > driver.answers[long].member_epoch > 0


@pytest.mark.parametrize("how", ["create topics", "stop"])
def test_what_looks_at_a_group_finishes_its_work_first(how: str) -> None:
    """A topic that is created and the end of the broker meet no half of a heartbeat."""
    undisturbed, driver = _with_topics(), _with_topics()
    connection, turns = _beat(undisturbed, "a", MANY), 0
    while connection not in undisturbed.answers:
        undisturbed.collect(undisturbed.broker.fire(undisturbed.now_ms))
        turns += 1
    assert _beat(driver, "a", MANY) == connection
    for _ in range(turns - 3):
        driver.collect(driver.broker.fire(driver.now_ms))
    assert connection not in driver.answers
    if how == "create topics":
        create(driver, 5, "news")
    else:
        driver.collect(driver.broker.stop(driver.now_ms))
    answer, expected = driver.answers[connection], undisturbed.answers[connection]
    assert answer.member_epoch == expected.member_epoch
    assert len(answer.assignment.topic_partitions) == len(expected.assignment.topic_partitions) == MANY
