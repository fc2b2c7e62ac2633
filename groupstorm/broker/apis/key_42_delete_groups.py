"""DeleteGroups (key 42), versions 0-3: empty groups go, with their offsets (KIP-229).

v3: a sentence about each error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.rights import group_error
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    names = tuple(dict.fromkeys(call.message.groups_names))
    errors = dict((yield from in_turns((name, group_error(state, call, name)) for name in names)))
    allowed = [name for name, error in errors.items() if error is Error.NONE]
    requests = [messages.DeleteGroup(name, call.client_id) for name in allowed]

    def finish(answers: Sequence[messages.DeleteGroupResponse]) -> Turns[Any]:
        decided = {name: answer.error for name, answer in zip(allowed, answers, strict=True)}
        results = yield from in_turns(
            call.types.make("DeletableGroupResult", group_id=name, error_code=decided.get(name, error))
            for name, error in errors.items()
        )
        return call.types.response(results=results)

    return AskCoordinator(requests, finish)


API = AskingApi(42, "DeleteGroups", 0, 3, handle, older=(2, 2), on_groups=Operation.DELETE)
