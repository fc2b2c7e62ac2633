"""Advice for one group: no setting that it has already, or that its protocol does not have; and the answer
for a group without a pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from groupstorm.explain.findings import Finding, culprits
from groupstorm.explain.history import History
from groupstorm.explain.patterns import PATTERNS
from groupstorm.explain.patterns.deployments import RESTARTS_MIN
from groupstorm.explain.patterns.selecting import find_restarts, rounds_of, unique
from groupstorm.explain.patterns.sessions import is_unheard_since, may_have_closed, since_load_us, went_on
from groupstorm.explain.patterns.waiting import herder_busy_us, poison_record
from groupstorm.tables import rows
from groupstorm.trace.events.group_states import Cause
from groupstorm.verdicts.ranking import FATAL
from groupstorm.wording import counted, lasting, listed

#: Assignors of classic groups with which everybody gives up everything in a round.
_EAGER: Final = ("range", "roundrobin", "sticky")
#: Nobody sets max.poll.interval.ms to less because of a round that waits.
_SHORTEST_INTERVAL_US: Final = 60_000_000
#: Members see after so long at the latest that a topic was deleted (metadata.max.age.ms).
_SEEN_US: Final = 300_000_000
#: Of so many members or partitions the advice has the names.
_NAMED_MAX: Final = 3
_JAVA: Final = "java"
#: The other wait is not worth turning anything: it is a fifth of this one at most.
_MUCH_MORE: Final = 5

#: Patterns of single members or partitions, which the advice names.
_NAMES_CULPRITS: Final = (
    *("held-join-phase", "max-poll-interval", "poison-record", "session-expired", "slow-assignor"),
    *("slow-callback", "slow-revocation", "static-orphan", "static-session-too-short", "static-unreleased"),
    "uncommitted",
)

#: What the owner of a kind of group can do, where it is something else.
_OF_KIND: Final = {(kind, name): text for kind, name, text in rows(__package__, "advice")}
_STREAMS_PRESETS: Final = frozenset({"migrate-streams", "rack-bill", "standby-loss", "stateful-warmup"})
#: The error of a sticky assignor of Kafka's, see the preset kafka-defects.
_DEFECT: Final = "IllegalStateException"
_SOURCE_MISSING: Final = frozenset({"MissingSourceTopicException", "INCOMPLETE_SOURCE_TOPIC_METADATA"})
_STOPPED: Final = "If somebody stopped the group, nothing: static members close without a LeaveGroup."
_INTERVAL: Final = "group.consumer.heartbeat.interval.ms"
_INTERVAL_MIN: Final = "group.consumer.min.heartbeat.interval.ms"


def advice_for(finding: Finding, history: History) -> str:
    """The advice of a finding's pattern, as far as it is one for this group, with the members to blame."""
    pattern, match = finding.pattern, finding.match
    own = _OF_PATTERN.get(pattern.name)
    text = pattern.advice if own is None else own(finding, history)
    if history.has_threads:
        text = _OF_KIND.get(("streams", pattern.name), text).replace("protocol=consumer", "protocol=streams")
    if history.is_consumer_group:
        # members that match a pattern themselves tell of a new topic; new partitions the coordinator sees
        if all(one.cause != Cause.MEMBER_UPDATED for one in match.rebalances):
            text = _OF_KIND.get(("epochs", pattern.name), text)
        text = text.replace(" session.timeout.ms", " group.consumer.session.timeout.ms")
    if history.is_shared:
        text = _OF_KIND.get(("share", pattern.name), text).replace("group.consumer.", "group.share.")
    if history.is_streams:
        text = text.replace("group.consumer.", "group.streams.")
    if history.is_streams and history.is_consumer_group:
        text = _OF_KIND.get(("streams-group", pattern.name), text)
    if history.is_connect:
        text = _OF_KIND.get(("connect", pattern.name), text)
        text = text.replace("its partitions", "its connectors and tasks")
        text = text.replace("max.poll.interval", "rebalance.timeout")
    if pattern.name == "static-orphan" and history.is_empty:  # no line tells these from members that died
        text = f"{_STOPPED} Else {text[0].lower()}{text[1:]}"
    text += _spelled(text, finding, history)
    culprits = match.partitions if 0 < len(match.partitions) <= _NAMED_MAX else match.members
    if pattern.name not in _NAMES_CULPRITS or not 0 < len(culprits) <= _NAMED_MAX:
        return text
    return f"{listed(culprits)}: {text[0].lower()}{text[1:]}"


#: The beginning of a client id that is its library's default -> the library.
_DEFAULT_IDS: Final = {"kgo": "franz-go", "rdkafka": "librdkafka", "sarama": "sarama", "kafkajs": "kafkajs"}
_HEAD, *_ROWS = rows("groupstorm.clients", "client_settings")
#: Library -> Kafka's name of a setting or an assignor -> the library's, "-" if it has none.
_SPELLED: Final = {
    library: {row[0].removeprefix("assignor "): row[column] for row in _ROWS}
    for column, library in enumerate(_HEAD)
}
_NAMED: Final = re.compile(r"[a-z]+(?:\.[a-z]+)+|cooperative-sticky")


def _spelled(text: str, finding: Finding, history: History) -> str:
    """The names that the members' libraries have for the settings of an advice, if they are not Kafka's."""
    known, more = history.settings.libraries, ""
    begun = ((one, one.partition("-")[0]) for one in finding.match.members or known)
    for library in unique(known.get(one, _DEFAULT_IDS.get(begin, "")) for one, begin in begun):
        own = dict(_SPELLED.get(library, {}))
        if finding.pattern.name not in ("max-poll-interval", "poison-record"):
            own["max.poll.interval.ms"] = own.get("rebalance timeout", "max.poll.interval.ms")
        said = {one: own.get(one, one) for one in _NAMED.findall(text) if library != _JAVA}
        parts = [f"{one} is {it}" for one, it in said.items() if it not in ("-", one, one.replace(".", "_"))]
        parts += [f"there is no {one}" for one, it in said.items() if it == "-"]
        more += f" In {library} {listed(parts)}." if parts else ""
    return more


def presets_for(finding: Finding, history: History) -> tuple[str, ...]:
    """The pattern's presets, as far as they are about such a group."""
    presets = () if history.is_connect else finding.pattern.presets
    if finding.pattern.name == "failing-members" and not _is_defect(finding, history):
        return ()
    presets = tuple(one for one in presets if ("share" in one) == history.is_shared)
    return tuple(one for one in presets if one in _STREAMS_PRESETS or not history.has_threads)


def _protocol(history: History) -> str:
    """The assignor that the classic group chose last, or its members prefer; "" if nothing says it."""
    joined = (one.joined for _, one in rounds_of(history) if one.joined is not None)
    chosen = [str(row["protocol"]) for row in joined if row.get("protocol")]
    preferred = history.settings.get("partition.assignment.strategy")
    return chosen[-1] if chosen else preferred[0] if isinstance(preferred, list) and preferred else ""


def _is_static(history: History) -> bool:
    return any(one.instance is not None for one in history.changes)


def _deploy_wave(finding: Finding, history: History) -> str:
    is_static = _is_static(history)
    if is_static and not finding.rebalances:
        return "Nothing in the group: partitions wait for as long as a restart takes. Make restarts faster."
    is_classic = not history.is_consumer_group and not history.has_threads
    if is_static:
        static = "keep each group.instance.id over restarts (StatefulSet), and close without LeaveGroup"
    else:
        static = (
            "static members (group.instance.id, names that stay) save rebalances if a process is back within "
            "session.timeout.ms, but nobody takes over what waits for it"
        )
    protocol = _protocol(history)
    # only cooperative rebalances have a second round after the first one has ended
    has_second = any(before.ended is not None for one in history.rebalances for before in one.rounds[:-1])
    may_be_eager = bool(finding.rebalances) and not protocol and not has_second
    condition = "" if protocol else " if the assignor is range, roundrobin or sticky"
    cooperative = ""
    if is_classic and (protocol in _EAGER or may_be_eager):  # two rounds may cost more than a short eager one
        cooperative = f"try cooperative-sticky{condition} (groupstorm whatif says what it would have cost)"
    text = "; ".join(part for part in (cooperative, static) if part)
    return f"{text[0].upper()}{text[1:]}."


def _needless_moves(finding: Finding, history: History) -> str:
    protocol = "uniform" if history.is_consumer_group else _protocol(history)
    if history.settings.get("group.remote.assignor") == "range" and history.is_consumer_group:
        return "Use the assignor uniform (group.remote.assignor), which keeps what it can."
    if protocol != "uniform" and "sticky" not in protocol:
        return finding.pattern.advice
    if _is_static(history) or not history.went():
        return f"{protocol} keeps what it can: change less at once."
    return f"{protocol} keeps what it can: give processes a group.instance.id, by which it knows them again."


def _poison_record(finding: Finding, history: History) -> str:
    general = finding.pattern.advice
    return general if history.of_kind("poll-timeout") else f"{general.partition(';')[0]}."


def _max_poll_interval(finding: Finding, history: History) -> str:
    if poison_record(history) is not None:
        return "Get past the one record (see poison-record): smaller batches (max.poll.records) do not help."
    longest_us = max((int(one.row["duration_us"]) for one in history.of_kind("slow-callback")), default=0)
    member = finding.match.members[0] if finding.match.members else ""
    limit_ms = history.settings.number("max.poll.interval.ms", member)
    if limit_ms is not None and longest_us >= 1000 * limit_ms:
        took = lasting(longest_us)
        return f"Raise max.poll.interval.ms above the {took} of a rebalance callback, or do less in it."
    return finding.pattern.advice


def _slow_worker(finding: Finding, history: History) -> str:
    busy_us, general = herder_busy_us(history, finding.match), finding.pattern.advice
    busy = f"the {lasting(busy_us)} for which it was"
    return general.replace("the time for which the herder is", busy) if busy_us else general


def _held_join_phase(finding: Finding, history: History) -> str:
    general = finding.pattern.advice
    consumer = general[general.index("group.protocol") :]
    if poison_record(history) is not None:
        return f"Get past the one record (see poison-record), or use {consumer}"
    if history.of_kind("slow-callback"):
        return f"Do less in onPartitionsRevoked (see slow-callback), or use {consumer}"
    if history.of_kind("process-paused"):  # batches are as long as ever
        return general.replace(" or max.poll.records", "")
    begun_us = [one.begun_us for one in finding.rebalances if not history.of_kind("slow-batch")]
    deleted = [one for one in history.of_kind("topics-changed") if one.row["event"] == "partitions_deleted"]
    if any(0 <= us - one.time_us <= _SEEN_US for us in begun_us for one in deleted):
        text = "Stop reading a topic before it is deleted: Java's consumer tries to commit it until"
        return f"{text} max.poll.interval.ms is over."
    longest_us = max((one.joining_us or 0 for each in finding.rebalances for one in each.rounds), default=0)
    # a shorter interval would remove members more often
    if longest_us < _SHORTEST_INTERVAL_US or history.of_kind("poll-timeout"):
        is_dead = "which died" in finding.match.unknown
        lower = "Find out why the process died. If a member was late: lower" if is_dead else "Lower"
        return f"{lower} max.poll.records, or use {consumer}"
    return general


def _group_start(finding: Finding, history: History) -> str:
    general = finding.pattern.advice
    if not history.is_consumer_group:
        return general
    return f"Members wait for their next heartbeat ({_INTERVAL}).{general[general.index(' --from') :]}"


def _waits_for_heartbeat(finding: Finding, history: History) -> str:
    heartbeat_us, poll_us = history.handover_waits_us or (0, 0)
    if heartbeat_us > _MUCH_MORE * poll_us:
        return f"Lower {_INTERVAL}, and its bound in the broker, {_INTERVAL_MIN} (5 s)."
    return "Poll more often." if poll_us > _MUCH_MORE * heartbeat_us else finding.pattern.advice


def _session_expired(finding: Finding, history: History) -> str:
    """A client that still looks for its coordinator does not stand still; one that dies keeps its name."""
    general = finding.pattern.advice
    rest = f"{general[0].lower()}{general[1:]}"
    moved = {one.member for one in history.refusals if is_unheard_since(history, one)}
    of_move = next(one.advice for one in PATTERNS if one.name == "coordinator-moved")
    if finding.match.members and moved.issuperset(finding.match.members):
        return of_move
    gone = [one for one in history.went() if one.member in finding.match.members]
    expired = [one for one in gone if one.cause == Cause.SESSION_EXPIRED]
    if expired and all(since_load_us(history, one) is not None for one in expired):
        return f"{of_move} If the process had died before: {rest}"
    if expired and len(went_on(history, expired)) == len(expired):
        return (
            "Raise session.timeout.ms by more than a heartbeat interval above the time for which a process "
            "stands still or has no network, or find out why it does (GC, CPU limits): none of these died."
        )
    if expired and all(one.is_closed for one in expired):
        return f"Find out why no LeaveGroup arrived (was the coordinator away?); {general.partition('; ')[2]}"
    if may_have_closed(history, gone):
        return (
            "If somebody closed them, set internal.leave.group.on.close=true for instances that do not come "
            f"back, or a group.instance.id for those that do. Else {rest}"
        )
    replaced = [one for one in find_restarts(history) if one.went.member in finding.match.members]
    renamed = sum(one.went.row.get("member") != one.came.row.get("member") for one in replaced)
    rollout = "If a rollout replaced them, give processes time to leave (terminationGracePeriodSeconds)."
    return f"{rollout} Else {rest}" if renamed >= RESTARTS_MIN else general


def _static_session_too_short(finding: Finding, history: History) -> str:
    stood = " If they were not restarted, find out why they stood still (GC, CPU limits, network)."
    return f"{finding.pattern.advice}{stood if finding.match.unknown else ''}"


def _failing_members(finding: Finding, history: History) -> str:
    """Only Java's assignors are sticky, and Kafka Streams has its own."""
    errors = {str(row.get("error")) for row in finding.match.evidence}
    if errors & _SOURCE_MISSING:
        return "Create the source topics before the application starts, and find out what deletes them."
    if known := sorted(errors & FATAL.keys()):
        return f"{'; '.join(f'{one}: {FATAL[one]}' for one in known)}."
    is_defect = _is_defect(finding, history)
    return finding.pattern.advice if is_defect else f"{finding.pattern.advice.partition(';')[0]}."


def _is_defect(finding: Finding, history: History) -> bool:
    """Whether a sticky assignor of Java's may have thrown the error."""
    is_java = _JAVA in {history.settings.libraries.get(one, _JAVA) for one in finding.match.members}
    is_sticky = _protocol(history) in ("", "sticky", "cooperative-sticky") and not history.has_threads
    return is_java and is_sticky and _DEFECT in {row.get("error") for row in finding.match.evidence}


_OF_PATTERN: Final[Mapping[str, Callable[[Finding, History], str]]] = {
    "deploy-wave": _deploy_wave,
    "poison-record": _poison_record,
    "needless-moves": _needless_moves,
    "max-poll-interval": _max_poll_interval,
    "slow-worker": _slow_worker,
    "held-join-phase": _held_join_phase,
    "group-start": _group_start,
    "waits-for-heartbeat": _waits_for_heartbeat,
    "session-expired": _session_expired,
    "static-session-too-short": _static_session_too_short,
    "failing-members": _failing_members,
}


_SAID_MAX: Final = 4
#: The logs that would say more, by whose lines are there.
_ADD_BROKER: Final = (
    "add the log of the group's coordinator (kafka.coordinator.group at INFO), and this client's log from "
    "its start on"
)
_ADD_CLIENTS: Final = "add the coordinator's log from before and after it, and the logs of the consumers"


def first_answer(history: History) -> str:
    """A sentence or more; "" if rebalances say enough. A group is only called quiet if its rows show it."""
    said = [one.sentence for one in history.refusals if not one.is_over or not history.rebalances]
    more = [f"And {len(said) - _SAID_MAX:,} more like it."] if len(said) > _SAID_MAX else []
    sentences = [*said[:_SAID_MAX], *more]
    lost = history.of_kind("lost")
    if lost and not history.rebalances:
        members = listed([*dict.fromkeys(one.member for one in lost)][:_SAID_MAX])
        sentences.append(
            f"Partitions were lost {counted(len(lost), 'time')}, without onPartitionsRevoked: {members}."
        )
    if history.attempts and not sentences and not history.rebalances:
        member, times = max(history.attempts.items(), key=lambda pair: pair[1])
        sentences.append(f"{member} said {counted(times, 'time')} that it has to join.")
    given = history.rebalances_at_least
    if given and not history.rebalances:
        member = max(history.assignments, key=lambda name: history.assignments[name])
        sentences.append(
            f"{member} was given partitions {counted(given, 'time')}, each time by a rebalance of which no "
            "line says who began it, or why."
        )
    if behind := history.of_kind("config-behind"):
        sentences.append(
            f"{behind[0].member} asked for a rebalance {counted(len(behind), 'time')}, as it had another "
            "configuration than the one by which the leader assigns."
        )
    unsaid = sum(len(one.rebalances) for one in culprits(history.rebalances, ()) if not one.is_known)
    if unsaid > len(behind) and history.is_imported:
        which = "them" if unsaid == len(history.rebalances) else f"{unsaid:,} of them"
        sentences.append(f"No line says who began {which}, or why: {_ADD_BROKER}.")
    if history.rebalances or history.rebalances_are_least:
        return " ".join(sentences)
    if history.is_shown_quiet:
        quiet = "No member came or went." if history.is_shared else "The group was quiet."
        return "" if history.absences or history.of_kind("crashed") else quiet
    add = _ADD_BROKER if history.has_member_rows else _ADD_CLIENTS
    lasted = lasting(history.shown_us)
    return " ".join(
        [*sentences, f"Too little to say more: {counted(history.lines, 'line')} over {lasted}; {add}."]
    )
