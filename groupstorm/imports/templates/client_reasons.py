"""Why a Java client joins again: its own words, and the cause that `rejoin_requested` names."""

from __future__ import annotations

from typing import Final

from groupstorm.imports.template import Template

_T = Template

REASONS: Final = (
    _T("first-join", "need to re-join with the given member-id: {member_id}", "4.3.1 AC:738"),
    _T("group-rebalancing", "group is already rebalancing", "4.3.1 AC:1264"),
    _T("group-rebalancing", "group is rebalancing", "2.3.1 AC:936"),
    _T("group-rebalancing", "The group began another rebalance. {rest}", "2.8.2 AC:785"),
    _T("group-rebalancing", "offset commit failed since group is already rebalancing", "4.3.1 CC:1428"),
    _T("revoked-partitions", "need to revoke partitions and re-join", "4.3.1 CC:448"),
    _T("revoked-partitions", "need to revoke partitions {rest}", "4.3.1 CC:448"),
    _T("metadata-changed", "cached metadata has changed from {rest}", "4.3.1 CC:924"),
    _T("metadata-changed", "the assignment metadata has changed from {rest}", "2.8.2 CC:798"),
    _T("subscription-changed", "the subscription has changed from {rest}", "2.8.2 CC:807"),
    _T("subscription-changed", "subscription has changed from {rest}", "4.3.1 CC:932"),
    _T("assignment-does-not-match-subscription", "received assignment {rest}", "4.3.1 CC:413"),
    _T("left-group", "consumer pro-actively leaving the group", "4.3.1 AC:1086"),
    _T("error", "encountered {error} from {api} response", "4.3.1 AC:1080"),
    _T("coordinator-unknown", "coordinator {rest}", "2.3.1 AC:931"),
    _T("coordinator-unknown", "Coordinator {rest}", "2.8.2 AC:607"),
    _T("UNKNOWN_MEMBER_ID", "member id {member_id} is not {rest}", "2.3.1 AC:947"),
    _T("unknown-generation", "generation {generation} is not current", "2.3.1 AC:940"),
)
