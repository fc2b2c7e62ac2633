"""AlterUserScramCredentials (key 51), version 0: credentials are set and deleted (KIP-554).

Needs ALTER on the cluster. The client sends the salted password, of which the broker keeps the keys that
prove it. If one change of a user is refused, none of that user's is made (ScramControlManager).
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.security.scram import ITERATIONS, credential_of_salted
from groupstorm.broker.security.users import SCRAM_MECHANISMS
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns

#: ScramControlManager.MAX_ITERATIONS
ITERATIONS_MAX = 16_384
_Problem = tuple[Error, str]


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    message = call.message
    problems: dict[str, _Problem | None] = {}
    for one in (*message.deletions, *message.upsertions):
        problem = _problem(state, one, one.name in problems)
        problems[one.name] = problems.get(one.name) or problem
        yield 1
    for one in message.deletions:
        if problems[one.name] is None:
            state.alter_credential(one.name, one.mechanism, None)
        yield 1
    for one in message.upsertions:
        if problems[one.name] is None:
            parts = (one.salt, one.iterations, one.salted_password)
            credential = credential_of_salted(SCRAM_MECHANISMS[one.mechanism], *parts)
            state.alter_credential(one.name, one.mechanism, credential)
        yield 5
    results = yield from in_turns(_result(call, *row) for row in problems.items())
    return Done(call.types.response(results=results))


API = Api(
    51, "AlterUserScramCredentials", 0, 0, handle, needs=(on_cluster(Operation.ALTER),),
    errors={"deletions": "results", "upsertions": "results"}, error_names={"user": "name"},
)  # fmt: skip


def _problem(state: BrokerState, one: Any, is_repeated: bool) -> _Problem | None:
    """The error of one deletion or upsertion. A request changes each user once, whatever the mechanism."""
    if is_repeated:
        sentence = "A user credential cannot be altered twice in the same request"
        return Error.DUPLICATE_RESOURCE, sentence
    if not one.name:
        return Error.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if one.mechanism not in SCRAM_MECHANISMS:
        return Error.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if hasattr(one, "iterations"):
        return _problem_of_upsertion(one)
    if one.mechanism in state.credentials.iterations_of(one.name):
        return None
    return Error.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"


def _problem_of_upsertion(one: Any) -> _Problem | None:
    if not ITERATIONS <= one.iterations <= ITERATIONS_MAX:
        few_or_many = "few" if one.iterations < ITERATIONS else "many"
        return Error.UNACCEPTABLE_CREDENTIAL, f"Too {few_or_many} iterations"
    if not one.salted_password:
        return Error.UNKNOWN_SERVER_ERROR, "Empty key"  # Java's HMAC takes none
    return None


def _result(call: Call, name: str, problem: _Problem | None) -> Any:
    error, sentence = problem or (Error.NONE, None)
    return call.types.make(
        "AlterUserScramCredentialsResult", user=name, error_code=error, error_message=sentence
    )
