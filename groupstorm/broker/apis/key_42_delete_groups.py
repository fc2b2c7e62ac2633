"""DeleteGroups (key 42), versions 0-2: empty groups go, with their offsets (KIP-229)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import Api, AskCoordinator, BrokerState, Call
from groupstorm.coordinator import messages


def handle(_state: BrokerState, call: Call) -> AskCoordinator:
    names = tuple(dict.fromkeys(call.message.groups_names))
    requests = [messages.DeleteGroup(name, call.client_id) for name in names]

    def finish(answers: Sequence[messages.DeleteGroupResponse]) -> Any:
        results = tuple(
            call.types.make("DeletableGroupResult", group_id=name, error_code=answer.error)
            for name, answer in zip(names, answers, strict=True)
        )
        return call.types.response(results=results)

    return AskCoordinator(requests, finish)


API = Api(42, "DeleteGroups", 0, 2, handle)
