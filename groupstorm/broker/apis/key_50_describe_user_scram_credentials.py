"""DescribeUserScramCredentials (key 50), version 0: mechanisms and iterations, never keys (KIP-554).

Needs DESCRIBE on the cluster. No users, or null, ask for all (ScramImage.describe).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    asked = [one.name for one in call.message.users or ()]
    results = []
    for name, times in Counter(asked or state.credentials.known_names()).items():
        if asked or state.credentials.iterations_of(name):
            results.append(_result(state, call, name, times > 1))
        yield 3
    return Done(call.types.response(error_code=Error.NONE, error_message=None, results=tuple(results)))


API = Api(
    50, "DescribeUserScramCredentials", 0, 0, handle, needs=(on_cluster(Operation.DESCRIBE, None),),
    errors={"users": "results"},
)  # fmt: skip


def _result(state: BrokerState, call: Call, name: str, is_repeated: bool) -> Any:
    make = call.types.make
    error, sentence, iterations = Error.NONE, None, state.credentials.iterations_of(name)
    if is_repeated:
        error = Error.DUPLICATE_RESOURCE
        sentence = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    elif not iterations:
        error = Error.RESOURCE_NOT_FOUND
        sentence = f"Attempt to describe a user credential that does not exist: {name}"
    infos = iterations.items() if error is Error.NONE else ()
    return make(
        "DescribeUserScramCredentialsResult",
        user=name,
        error_code=error,
        error_message=sentence,
        credential_infos=tuple(
            make("CredentialInfo", mechanism=mechanism, iterations=count) for mechanism, count in infos
        ),
    )
