"""The judge of a share group (KIP-932): it judges record by record, since partitions have no owner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from groupstorm.testing.ledger.entries import Input, Processing
from groupstorm.testing.ledger.findings import Allowed, Finding, Kind
from groupstorm.testing.ledger.judging import Judge


class ShareJudge(Judge):
    """At-least-once holds if every record was processed. A record may come again: its lock has ended, or it
    was released. It may not come more often than the group allows, and two instances may not have it at once:
    then one of them has worked on it for longer than its lock.
    """

    def findings(self) -> list[Finding]:
        found: list[Finding] = []
        for record in self._history.inputs:
            processings = self._of_record.get((record.partition, record.offset), [])
            found += self._not_processed(record, processings)
            found += self._again(record, processings)
            found += self._at_once(record, processings)
            found += self._too_often(record, processings)
        return found

    def _not_processed(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        if self._rules.is_over and not any(one.is_complete for one in processings):
            is_done = record.partition in self._history.finished
            kind = Kind.LOST if is_done else Kind.UNPROCESSED
            yield self._finding(kind, record, _deliveries(processings), processings)

    def _again(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        allowed = Allowed.NEVER if self._rules.exactly_once else Allowed.YES
        for first, again in pairwise(one for one in processings if one.is_complete):
            detail = f"by {first.by or 'an instance'} and again by {again.by or 'an instance'}: {allowed}"
            found = self._finding(Kind.TWICE, record, detail, (first, again))
            yield found._replace(allowed=allowed)

    def _at_once(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        for first, second in combinations(processings, 2):
            if first.by != second.by and first.ended is not None and second.begun.is_before(first.ended):
                detail = f"{first.by} still had it in hand when {second.by} got it: its lock had ended"
                yield self._finding(Kind.TWO_AT_ONCE, record, detail, (first, second))

    def _too_often(self, record: Input, processings: Sequence[Processing]) -> Iterator[Finding]:
        most = self._rules.deliveries
        if most is not None and len(processings) > most:
            detail = f"{len(processings)} times, and the group allows {most}"
            yield self._finding(Kind.TOO_OFTEN, record, detail, processings)


def _deliveries(processings: Sequence[Processing]) -> str:
    if not processings:
        return "no instance has begun it"
    return f"begun and not done {len(processings)} times, last by {processings[-1].by or 'an instance'}"
