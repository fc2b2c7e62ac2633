"""A live group changes its protocol: a classic group is upgraded, a consumer group is downgraded.

Kafka: GroupMetadataManager.getOrMaybeCreateConsumerGroup, convertToConsumerGroup, convertToClassicGroup,
ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from groupstorm.assignors.userdata import (
    SchemaError,
    UserDataError,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from groupstorm.assignors.userdata.wire import read_int16
from groupstorm.coordinator.changes import emit_downgraded, restart_session, restore
from groupstorm.coordinator.classic.changes import answer_all_parked, cancel_timers
from groupstorm.coordinator.classic.changes import restart_session as restart_classic_session
from groupstorm.coordinator.classic.group import ClassicGroup, Member
from groupstorm.coordinator.classic.group_records import group_record
from groupstorm.coordinator.classic.rebalances import prepare_rebalance
from groupstorm.coordinator.classic.states import EMPTY, STABLE
from groupstorm.coordinator.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, take_subscriptions
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerEpochRecord,
    ConsumerMember,
    ConsumerTargetEpochRecord,
    ConsumerTargetRecord,
    Partitions,
)
from groupstorm.coordinator.effects import Completion, Write
from groupstorm.coordinator.errors import CoordinatorFault, Error, Refused
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from groupstorm.coordinator.modern.group import NEVER
from groupstorm.coordinator.modern.member import JOIN_EPOCH
from groupstorm.coordinator.modern.membership import group_of_kind
from groupstorm.coordinator.modern.subscribed import named
from groupstorm.coordinator.records import AppendCause, GroupTombstone, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.javahash import JavaHashMap, hash_order, integer_hash, uuid_hash
from groupstorm.trace.events.group_states import Cause


def group_to_join(shard: Shard, request: ConsumerGroupHeartbeat, records: list[Record]) -> ConsumerGroup:
    """The group of a heartbeat: a new one for the first member, an upgraded one in place of a classic group.

    A group that is new or upgraded exists only once its records are taken in.
    """
    group = shard.groups.get(request.group)
    if request.member_epoch != JOIN_EPOCH or not (group is None or isinstance(group, ClassicGroup)):
        return group_of_kind(group, request.group, ConsumerGroup, "Consumer group")
    if group is None:
        return ConsumerGroup.new(request.group, shard.config.compatibility)
    if group.state is EMPTY:
        records.append(GroupTombstone(group.name))
        return ConsumerGroup.new(request.group, shard.config.compatibility)
    _check_upgrade(shard, group)
    return _upgrade(shard, group, records)


def _check_upgrade(shard: Shard, group: ClassicGroup) -> None:
    config = shard.config.consumer
    if not config.migration_policy.upgrades:
        reason = "online upgrade is disabled"
    elif group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > config.max_size:
        reason = "the group size exceeds the consumer group maximum size"
    else:
        return
    raise Refused(Error.GROUP_ID_NOT_FOUND, _cannot_upgrade(group, reason))


def _cannot_upgrade(group: ClassicGroup, reason: str) -> str:
    return f"Cannot upgrade classic group {group.name} to consumer group because {reason}."


def _upgrade(shard: Shard, classic: ClassicGroup, records: list[Record]) -> ConsumerGroup:
    """Every member keeps its partitions; the generation becomes every epoch. Parked members rejoin."""
    answer_all_parked(shard, classic, Error.REBALANCE_IN_PROGRESS)
    records.append(GroupTombstone(classic.name))
    group = ConsumerGroup.new(classic.name, shard.config.compatibility)
    group.set_assignment_epoch(classic.generation, NEVER)
    for one in classic.members.values():
        member, target = _upgraded(shard, classic, one)
        group.set_target(member.member_id, target)
        group.set_member(member.member_id, member)
    group.set_epoch(classic.generation, shard.topics.hash_of(group.subscribed))
    records += group_records(group)
    if not shard.config.compatibility.is_to_the_letter:
        cancel_timers(shard, classic)
    for member in group.members.values():
        if member.classic is not None:
            restart_session(shard, group.name, member, member.classic.session_timeout_ms)
    return group


def _upgraded(shard: Shard, group: ClassicGroup, one: Member) -> tuple[ConsumerMember, dict[UUID, list[int]]]:
    """A classic member as a member of a consumer group, and its target."""
    try:
        target = _assigned(shard, group, one.assignment)
        if group.protocol is None:
            raise CoordinatorFault(f"group {group.name!r} has no generation yet")
        subscription = decode_subscription(one.metadata(group.protocol))
    except UserDataError as problem:
        if isinstance(problem, SchemaError) or shard.config.compatibility.is_4_4:
            reason = "the embedded consumer protocol is malformed"
            raise Refused(Error.GROUP_ID_NOT_FOUND, _cannot_upgrade(group, reason)) from problem
        raise CoordinatorFault(f"group {group.name!r}: unreadable bytes: {problem}") from problem
    held: Partitions = {topic: dict.fromkeys(numbers, group.generation) for topic, numbers in target.items()}
    member = ConsumerMember(
        one.member_id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance=one.group_instance_id,
        rack=subscription.rack,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        client_id=one.client_id,
        client_host=one.client_host,
        **named(subscription.topics),
        assigned=held,
        classic=ClassicMetadata(one.session_timeout_ms, one.protocols),
    )
    return member, target


def _assigned(shard: Shard, group: ClassicGroup, assignment: bytes) -> dict[UUID, list[int]]:
    """The partitions of existing topics in an assignment, in the order of Kafka's hash tables."""
    if not assignment:
        return {}
    decoded = decode_assignment(assignment)
    if decoded.user_data:
        raise Refused(
            Error.GROUP_ID_NOT_FOUND,
            _cannot_upgrade(group, "an unsupported custom assignor is in use")
            + " Please refer to the documentation or switch to a default assignor before re-attempting the"
            " upgrade.",
        )
    listed: dict[UUID, list[int]] = {}
    for name, number in decoded.partitions:
        topic = shard.topics.topic_id(name)
        if topic is not None:
            listed.setdefault(topic, []).append(number)
    return in_hash_order(listed)


def in_hash_order(partitions: dict[UUID, list[int]]) -> dict[UUID, list[int]]:
    """Topics as a HashMap lists them, partitions as a HashSet does."""
    return {
        topic: JavaHashMap.set_of(partitions[topic], integer_hash).keys()
        for topic in hash_order(partitions, uuid_hash)
    }


def group_records(group: ConsumerGroup) -> list[Record]:
    """The records that make the group anew (ConsumerGroup.createConsumerGroupRecords)."""
    name, members = group.name, list(group.members.values())
    return [
        *map(group.member_record, members),
        ConsumerEpochRecord(name, group.epoch, group.metadata_hash),
        *(ConsumerTargetRecord(name, one.member_id, group.target(one.member_id)) for one in members),
        ConsumerTargetEpochRecord(name, group.assignment_epoch, group.assignment_ms),
        *map(group.current_record, members),
    ]


def may_downgrade_without(shard: Shard, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
    """Whether only classic members remain, enough and not too many, and the policy allows it."""
    remaining = len(group.members) - len(leaving)
    classic = group.classic_members - sum(one.classic is not None for one in leaving)
    return (
        classic == remaining
        and 0 < remaining <= shard.config.max_size
        and shard.config.consumer.migration_policy.downgrades
    )


def may_downgrade_replacing(shard: Shard, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
    """Whether only classic members remain once a classic member takes this one's place."""
    return (
        group.classic_members == len(group.members) - 1
        and replaced.classic is None
        and len(group.members) <= shard.config.max_size
        and shard.config.consumer.migration_policy.downgrades
    )


def downgrade_without(
    shard: Shard,
    group: ConsumerGroup,
    leaving: Sequence[ConsumerMember],
    cause: Cause,
    on_written: Completion | None,
) -> Write:
    """Go on as a classic group without these members; the others rebalance."""
    records: list[Record] = [*group.tombstones()]
    gone = {one.member_id for one in leaving}
    emit_downgraded(shard, group, leaving, cause)
    return downgrade(shard, group, gone, None, records, on_written, rebalances=True)


def downgrade(
    shard: Shard,
    group: ConsumerGroup,
    leaving: Collection[str],
    joining: ConsumerMember | None,
    records: list[Record],
    on_written: Completion | None,
    *,
    rebalances: bool,
) -> Write:
    """Put a classic group in the place of this one. Its generation is the group epoch, its members have their
    targets as assignments. ``joining``: a static member that takes over from one of the group's."""
    classic = _downgraded(shard, group, leaving, joining)
    records.append(group_record(shard, classic))
    restore(shard, group.name, None)
    shard.groups.put(group.name, classic)
    for member in classic.members.values():
        restart_classic_session(shard, classic, member)
    if rebalances:
        prepare_rebalance(shard, classic, Cause.DOWNGRADED, None)

    def apply() -> None:
        classic.committed = True

    write = Write(group.name, records, AppendCause.GROUP_DOWNGRADED, on_written, apply)
    write.revert = lambda: restore(shard, group.name, group)
    return write


def _downgraded(
    shard: Shard, group: ConsumerGroup, leaving: Collection[str], joining: ConsumerMember | None
) -> ClassicGroup:
    classic = ClassicGroup(group.name)
    classic.state, classic.state_since_ms = STABLE, shard.now_ms
    classic.generation, classic.protocol_type = group.epoch, CONSUMER_PROTOCOL_TYPE
    for member_id, member in group.members.items():
        is_replaced = (
            joining is not None and joining.instance is not None and joining.instance == member.instance
        )
        if member_id not in leaving and not is_replaced:
            classic.add(_classic(member), None)
    if joining is not None:
        classic.add(_classic(joining), None)
    classic.protocol = classic.select_protocol()
    take_subscriptions(classic, shard.config.compatibility)
    for one in classic.members.values():
        holder = one.member_id
        if joining is not None and holder == joining.member_id:
            holder = group.static_members[joining.instance or ""]
        try:
            one.assignment = encode_held(shard, group.target(holder), one.metadata(classic.protocol))
        except SchemaError as problem:
            raise Refused(
                Error.GROUP_ID_NOT_FOUND, f"Cannot downgrade group {group.name}: {problem}"
            ) from problem
    return classic


def encode_held(shard: Shard, held: Mapping[UUID, Iterable[int]], subscription: bytes) -> bytes:
    """An assignment of the consumer protocol in the version of the member's subscription; topics that no
    longer exist are left out. Raises SchemaError."""
    version, _ = read_int16(subscription, 0)
    listed = [
        (name, number)
        for topic, numbers in in_hash_order({topic: list(one) for topic, one in held.items()}).items()
        if (name := shard.topics.name(topic)) is not None
        for number in numbers
    ]
    return encode_assignment(listed, None, version)


def _classic(member: ConsumerMember) -> Member:
    if member.classic is None:
        raise CoordinatorFault(f"member {member.member_id!r} does not speak the classic protocol")
    return Member(
        member.member_id,
        member.instance,
        (member.client_id, member.client_host),
        (member.classic.session_timeout_ms, member.rebalance_timeout_ms),
        CONSUMER_PROTOCOL_TYPE,
        member.classic.protocols,
    )
