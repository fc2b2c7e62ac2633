"""Which topics a membership watches: those of the whole group, its own, or those that match its pattern."""

from __future__ import annotations

from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_subscription,
)
from groupstorm.clients.operations import CallbackKind, RunCallback
from groupstorm.clients.profiles import PROFILES
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroupMember
from tests.clients.scripted_consumer import JOINED, T0, ScriptedConsumer, synced, to_join


def test_a_leader_that_is_told_to_skip_its_plan_watches_the_topics_of_that_time() -> None:
    consumer = ScriptedConsumer(group_instance_id="i")
    consumer.answer()
    metadata = encode_subscription(Subscription(("t",), None, (), -1), 3)
    me = (JoinGroupMember("c-1", "i", metadata),)
    consumer.answer(JOINED._replace(leader="c-1", skip_assignment=True, members=me))
    consumer.answer(synced(T0))
    consumer.answer()
    consumer.membership.metadata_refreshed()
    assert consumer.causes() == ["first-join"]
    consumer.topics = {"t": 4}
    consumer.membership.metadata_refreshed()
    assert consumer.causes()[-1] == "metadata-changed"


def test_a_leader_whose_topics_grow_while_it_syncs_joins_again_when_the_round_is_over() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    metadata = encode_subscription(Subscription(("t",), None, (), -1), 3)
    consumer.answer(JOINED._replace(leader="c-1", members=(JoinGroupMember("c-1", None, metadata),)))
    consumer.membership.assignor_begins()
    consumer.topics = {"t": 4}
    consumer.membership.metadata_refreshed()
    consumer.answer(())
    consumer.answer(synced(T0))
    consumer.answer()
    assert consumer.causes() == ["first-join", "metadata-changed"]


def test_a_member_that_leads_no_more_watches_no_topics() -> None:
    consumer = ScriptedConsumer()
    consumer.answer()
    metadata = encode_subscription(Subscription(("t",), None, (), -1), 3)
    consumer.answer(JOINED._replace(leader="c-1", members=(JoinGroupMember("c-1", None, metadata),)))
    consumer.membership.assignor_begins()
    consumer.answer(())
    consumer.answer(synced(T0))
    consumer.membership.heartbeat_answered(Error.REBALANCE_IN_PROGRESS, consumer.membership.generation)
    consumer.join(T0)
    assert not consumer.membership.is_leader
    consumer.topics = {"t": 4}
    consumer.membership.metadata_refreshed()
    assert consumer.causes() == ["first-join", "group-rebalancing"]


def test_every_librdkafka_member_watches_its_topics_from_the_joingroup_on() -> None:
    consumer = ScriptedConsumer(profile=PROFILES["librdkafka"])
    consumer.join(T0)
    consumer.topics = {"t": 3, "other": 1}
    consumer.membership.metadata_refreshed()
    assert consumer.causes() == ["first-join"]
    consumer.topics = {"t": 4}
    consumer.membership.metadata_refreshed()
    assert consumer.causes()[-1] == "metadata-changed"


# -- patterns ----------------------------------------------------------------------------------------


def test_a_member_with_a_pattern_joins_again_when_other_topics_match() -> None:
    consumer = ScriptedConsumer(topic_pattern="t.?")
    consumer.topics = {"t": 3, "t1": 1, "other": 1}
    assert decode_subscription(to_join(consumer).protocols[0][1]).topics == ("t", "t1")
    consumer.join(T0)
    before = consumer.membership.subscribed
    consumer.topics = {"t": 3, "t1": 1, "other": 2, "t2": 1}
    consumer.membership.metadata_refreshed()
    assert (before, consumer.membership.subscribed) == (("t", "t1"), ("t", "t1", "t2"))
    assert consumer.causes()[-1] == "subscription-changed"
    assert decode_subscription(to_join(consumer).protocols[0][1]).topics == ("t", "t1", "t2")


def test_a_member_that_is_out_of_the_group_does_not_ask_to_join_for_its_pattern() -> None:
    consumer = ScriptedConsumer(topic_pattern="t.?")
    consumer.join(T0)
    consumer.membership.heartbeat_answered(Error.ILLEGAL_GENERATION, consumer.membership.generation)
    consumer.topics = {"t": 3, "t2": 1}
    consumer.membership.metadata_refreshed()
    assert to_join(consumer).reason == "encountered ILLEGAL_GENERATION from HEARTBEAT response"


def test_a_cooperative_member_gives_up_topics_that_match_no_more_before_it_joins() -> None:
    consumer = ScriptedConsumer(topic_pattern="t.?", enable_auto_commit=False)
    consumer.topics = {"t": 3, "t2": 1}
    other = TopicPartition("t2", 0)
    consumer.join(T0, other)
    consumer.topics = {"t": 3}
    consumer.membership.metadata_refreshed()
    assert consumer.answer() == RunCallback(CallbackKind.REVOKED, (other,), "subscription")
    assert decode_subscription(to_join(consumer).protocols[0][1]).owned == (T0,)
