"""The reason of a slow handover, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.pipeline.results import SlowHandover
from groupstorm.wording import seconds

#: How an owner came to own no more: (event, cause) or the event alone -> a clause about ``old``.
_ENDINGS: Mapping[tuple[str, str | None], str] = {
    ("partitions_revoked", "rebalance"): "{old} gave up everything to join again",
    ("partitions_revoked", "assignment"): "{old} was not assigned it any more",
    ("partitions_revoked", "subscription"): "{old} dropped the topic",
    ("partitions_revoked", "close"): "{old} closed",
    ("partitions_lost", None): "{old} was out of the group ({cause})",
    ("member_crashed", None): "{old} crashed",
    ("member_started", None): "the group began",
    ("partitions_created", None): "it was created",
    ("member_removed", None): "{old} was removed ({cause})",
    ("member_replaced", None): "{old} came back under a new id",
    ("join_parked", None): "{old} joined again",
    ("join_answered", None): "{old} joined again",
    ("sync_answered", None): "{old} was not assigned it any more",
    ("member_reconciled", None): "{old} had given it up",
}


def why(handover: SlowHandover) -> str:
    """Tell what ended the old ownership, how long nobody noticed, and who came after how many generations."""
    ending = _ENDINGS.get((handover.ended_by, handover.cause)) or _ENDINGS[handover.ended_by, None]
    clauses = [ending.format(old=handover.old_owner, cause=handover.cause)]
    if handover.round_us is not None and handover.round_us > handover.from_us:
        waited = seconds((handover.round_us - handover.from_us) / 1_000_000)
        clauses.append(f"the next round began {waited} later ({handover.rebalance_cause})")
    elif handover.round_us is not None:
        clauses.append(f"in a round because of {handover.rebalance_cause}")
    if handover.new_owner is None:
        clauses.append("nobody took it until the end")
    elif handover.new_owner == handover.old_owner:
        clauses.append(f"{handover.new_owner} got it back")
    else:
        clauses.append(f"{handover.new_owner} took it")
    if handover.generations is not None and handover.generations > 1:
        clauses[-1] += f" {handover.generations} generations later"
    return "; ".join(clauses)
