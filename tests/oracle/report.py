"""The summary of a run, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from groupstorm.coordinator.modern.member import MemberState, TaskState
from tests.oracle.coverage import NO_GROUP, Coverage
from tests.oracle.differential import Outcome
from tests.oracle.running import Seconds
from tests.oracle.tables import (
    ALL_ERRORS,
    ALL_TRANSITIONS,
    OUTSIDE_THE_COORDINATOR,
    RULES,
    RULES_BY_KIND,
    UNREACHABLE_ERRORS,
    UNREACHABLE_TRANSITIONS,
)
from tests.oracle.transcripts import transcript

_WRONG = "  REACHED ALL THE SAME: the table in tests/oracle/tables.py is wrong"

_STATES = (
    *(NO_GROUP, "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "consumer Empty"),
    *("consumer Assigning", "consumer Reconciling", "consumer Stable", "share Empty", "share Stable"),
    *("streams Empty", "streams NotReady", "streams Assigning", "streams Reconciling", "streams Stable"),
)
_REQUESTS = (
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "DescribeGroup"),
    *("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"),
)


def summary(outcome: Outcome, title: str, seconds: Seconds, kind: str = "classic") -> str:
    """Counts, coverage, time, differences."""
    lines = [title, *_counts(outcome), ""]
    if kind == "classic":
        lines += [*_errors(outcome.coverage), "", *_transitions(outcome.coverage), ""]
    else:
        lines += [*_group_errors(outcome.coverage, RULES_BY_KIND[kind]), ""]
        if kind != "share":  # whose members take partitions at once
            lines += [*_steps(outcome.coverage, TaskState if kind == "streams" else MemberState), ""]
    lines += [*_requests(outcome.coverage), "", *_causes(outcome.coverage), ""]
    lines += [times("scripts", outcome.coverage.scripts, seconds)]
    lines += differences(outcome.different, (transcript(*found) for found in outcome.found))
    return "\n".join(lines)


def _counts(outcome: Outcome) -> Iterator[str]:
    coverage = outcome.coverage
    yield (
        f"scripts {coverage.scripts:,} ({coverage.failed:,} refused for their configuration), "
        f"steps {coverage.steps:,}, answers {sum(coverage.answers.values()):,}"
    )


def table(head: tuple[str, ...], rows: list[tuple[str, ...]], texts: int = 1) -> Iterator[str]:
    """Lines of a table: the first ``texts`` columns to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        cells = [
            cell.ljust(width) if column < texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()


def _number(count: int) -> str:
    return f"{count:,}" if count else "."


def _errors(coverage: Coverage) -> Iterator[str]:
    """Answers by error and kind; codes that only ever came up as a failed append's reason share a row."""
    kinds = tuple(RULES)
    by_rules = [error for error in ALL_ERRORS if any(error in errors for errors in RULES.values())]
    told = ["COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"]
    rows = [_error_row(coverage, error, kinds) for error in [*by_rules, *told]]
    others = [error for error in ALL_ERRORS if error not in by_rules and error not in told]
    reached = [error for error in others if any(coverage.answers[kind, error] for kind in kinds)]
    totals = [sum(coverage.answers[kind, error] for error in reached) for kind in kinds]
    rows.append((f"{len(reached)} more, as failed appends", *map(_number, totals)))
    yield "Errors of answers"
    yield from table(("", *kinds), rows)
    rules = [(kind, error) for kind in kinds for error in RULES[kind]]
    missing = [f"{kind}:{error}" for kind, error in rules if not coverage.answers[kind, error]]
    yield f"  reached {len(rules) - len(missing)} of the {len(rules)} that the rules give, and"
    missing += [error for error in others if error not in reached and error not in UNREACHABLE_ERRORS]
    codes = {error for _, error in coverage.answers}
    yield f"  {len(codes)} of {len(ALL_ERRORS) - len(UNREACHABLE_ERRORS)} codes that scripts can reach"
    yield f"  not reached in this run: {', '.join(missing) or 'nothing'}"
    yield from _unreachable(UNREACHABLE_ERRORS, codes)
    yield "  only as the reason of a failed append, never by a rule:"
    yield from (f"    {error}: {why}" for error, why in OUTSIDE_THE_COORDINATOR.items())


def _group_errors(coverage: Coverage, by_kind: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Answers by error and kind, and the errors that the rules give but this run did not meet."""
    met = [error for error in ALL_ERRORS if any(coverage.answers[kind, error] for kind in by_kind)]
    yield "Errors of answers"
    yield from table(("", *by_kind), [_error_row(coverage, error, tuple(by_kind)) for error in met])
    rules = [(kind, error) for kind, errors in by_kind.items() for error in errors]
    missing = [f"{kind}:{error}" for kind, error in rules if not coverage.answers[kind, error]]
    yield f"  reached {len(rules) - len(missing)} of the {len(rules)} that the rules give"
    yield f"  not reached in this run: {', '.join(missing) or 'nothing'}"


def _steps(coverage: Coverage, kinds: Iterable[MemberState | TaskState]) -> Iterator[str]:
    """Reconciliations by the state before and after."""
    states = [state.value for state in kinds]
    yield "Reconciliation: members by their state before (down) and after (across)"
    rows = [
        (before, *(_number(coverage.reconciliations[before, after]) for after in states))
        for before in ("new", *states)
    ]
    yield from table(("", *states), rows)


def _error_row(coverage: Coverage, error: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    return (error, *(_number(coverage.answers[kind, error]) for kind in kinds))


def _unreachable(table: dict[str, str], reached: set[str]) -> Iterator[str]:
    yield "  scripts cannot reach:" if table else "  scripts cannot reach: nothing is left out"
    for name, why in table.items():
        yield f"    {name}: {why}{_WRONG if name in reached else ''}"


def _transitions(coverage: Coverage) -> Iterator[str]:
    yield "Transitions (groupstorm/coordinator/classic/states.py)"
    for before, cause in ALL_TRANSITIONS:
        yield f"  {before:<20} {cause:<18} {_number(coverage.transitions[before, cause]):>10}"
    reached = {row for row in ALL_TRANSITIONS if coverage.transitions[row]}
    missing = [row for row in ALL_TRANSITIONS if row not in reached and row not in UNREACHABLE_TRANSITIONS]
    yield f"  reached {len(reached)} of {len(ALL_TRANSITIONS) - len(UNREACHABLE_TRANSITIONS)}"
    yield f"  not reached in this run: {', '.join(': '.join(row) for row in missing) or 'nothing'}"
    table = {": ".join(row): why for row, why in UNREACHABLE_TRANSITIONS.items()}
    yield from _unreachable(table, {": ".join(row) for row in reached})


def _requests(coverage: Coverage) -> Iterator[str]:
    yield "Requests by the state of their group"
    states = [state for state in _STATES if any(coverage.requests[name, state] for name in _REQUESTS)]
    names = [name for name in _REQUESTS if any(coverage.requests[name, state] for state in states)]
    rows = [(name, *(_number(coverage.requests[name, state]) for state in states)) for name in names]
    yield from table(("", *states), rows)


def _causes(coverage: Coverage) -> Iterator[str]:
    yield "Other events"
    for (event, cause), count in sorted(coverage.causes.items()):
        yield f"  {event:<22} {cause:<20} {count:>10,}"


def times(what: str, count: int, seconds: Seconds) -> str:
    thousands = count / 1000 or 1
    return (
        f"seconds per 1,000 {what}: Kafka {seconds.kafka_cpu / thousands:.1f} of CPU with the JVM's start, "
        f"ours {seconds.our_cpu / thousands:.1f} of CPU, "
        f"all together {seconds.wall / thousands:.1f} on the clock"
    )


def differences(different: list[str], transcripts: Iterable[str]) -> Iterator[str]:
    yield f"differences: {len(different):,}"
    if different:
        yield "  " + ", ".join(different[:20]) + (" ..." if len(different) > 20 else "")
    for text in transcripts:
        yield ""
        yield text
