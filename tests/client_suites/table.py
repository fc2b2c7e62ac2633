"""A table of how the tests of a suite ended, side by side for each broker, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tests.client_suites.suite import Outcome, Verdict

_NOT_DIFFERENT = frozenset({Verdict.PASSED, Verdict.SKIPPED})


def table(columns: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """A row per test; ``columns``: by the broker's name, the same tests in the same order."""
    yield f"| test | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for row in zip(*columns.values(), strict=True):
        cells = (f"{one.verdict} {one.seconds:.1f} s" for one in row)
        yield f"| {row[0].name} | {' | '.join(cells)} |"


def counts(columns: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """A line per broker: how many tests ended in which way."""
    for broker, outcomes in columns.items():
        found = Counter(one.verdict for one in outcomes)
        yield f"{broker}: {', '.join(f'{found[one]} {one}' for one in Verdict if found[one])}"


def reasons(columns: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """A line per test that has not passed, with what the suite says."""
    for row in zip(*columns.values(), strict=True):
        for broker, one in zip(columns, row, strict=True):
            if one.verdict is not Verdict.PASSED:
                yield f"{one.name} on {broker}: {one.verdict}: {one.reason or 'no reason given'}"


def has_failures(columns: Mapping[str, Sequence[Outcome]]) -> bool:
    return any(one.verdict not in _NOT_DIFFERENT for outcomes in columns.values() for one in outcomes)
