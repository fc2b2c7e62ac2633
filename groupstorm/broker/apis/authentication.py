"""SaslHandshake and SaslAuthenticate, and the SCRAM credentials of users."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

from groupstorm.broker.apis.api import Api, Call, Done
from groupstorm.broker.apis.resources import on_cluster
from groupstorm.broker.authorization import Operation
from groupstorm.broker.changes import CredentialAltered
from groupstorm.broker.security.users import ITERATIONS, SCRAM_MECHANISMS, credential_of_salted
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns


def sasl_handshake(_state: BrokerState, call: Call) -> Done:
    """SaslHandshake (key 17), versions 0-1: which mechanism the client wants (KIP-43).

    v0: the mechanism's tokens follow as bare frames; v1: in SaslAuthenticate (KIP-152).
    `security.authenticator` answers it. This handler sees it only if the listener wants no authentication, or
    if the client has authenticated already: the request is out of place.
    """
    return Done(call.types.make("SaslHandshakeResponse", error_code=Error.ILLEGAL_SASL_STATE, mechanisms=()))


SASL_HANDSHAKE = Api(17, "SaslHandshake", 0, 1, sasl_handshake)


def sasl_authenticate(_state: BrokerState, call: Call) -> Done:
    """SaslAuthenticate (key 36), versions 0-2: a token of the mechanism (KIP-152).

    v1: the answer says how long the session lasts (KIP-368). v2: flexible. It is answered before it gets here
    (`security.authenticator`); if nothing is to be proved, or everything is already, it is out of place.
    """
    response = call.types.make(
        "SaslAuthenticateResponse",
        error_code=Error.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
        session_lifetime=datetime.timedelta(0),
    )
    return Done(response)


SASL_AUTHENTICATE = Api(36, "SaslAuthenticate", 0, 2, sasl_authenticate)


def describe_user_scram_credentials(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeUserScramCredentials (key 50), version 0: mechanisms and iterations, never keys (KIP-554).

    Needs DESCRIBE on the cluster. No users, or null, ask for all (ScramImage.describe).
    """
    asked = [one.name for one in call.message.users or ()]
    results = []
    for name, times in Counter(asked or state.credentials.known_names()).items():
        if asked or state.credentials.iterations_of(name):
            results.append(_described_result(state, call, name, times > 1))
        yield 3
    return Done(call.types.response(error_code=Error.NONE, error_message=None, results=tuple(results)))


def _described_result(state: BrokerState, call: Call, name: str, is_repeated: bool) -> Any:
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


#: ScramControlManager.MAX_ITERATIONS
ITERATIONS_MAX = 16_384
_Problem = tuple[Error, str]


def alter_user_scram_credentials(state: BrokerState, call: Call) -> Turns[Done]:
    """AlterUserScramCredentials (key 51), version 0: credentials are set and deleted (KIP-554).

    Needs ALTER on the cluster. The client sends the salted password, of which the broker keeps the keys that
    prove it. If one change of a user is refused, none of that user's is made (ScramControlManager).
    """
    message = call.message
    problems: dict[str, _Problem | None] = {}
    for one in (*message.deletions, *message.upsertions):
        problem = _problem(state, one, one.name in problems)
        problems[one.name] = problems.get(one.name) or problem
        yield 1
    for one in message.deletions:
        if problems[one.name] is None:
            state.carry_out(CredentialAltered(one.name, one.mechanism, None))
        yield 1
    for one in message.upsertions:
        if problems[one.name] is None:
            parts = (one.salt, one.iterations, one.salted_password)
            credential = credential_of_salted(SCRAM_MECHANISMS[one.mechanism], *parts)
            state.carry_out(CredentialAltered(one.name, one.mechanism, credential))
        yield 5
    results = yield from in_turns(_altered_result(call, *row) for row in problems.items())
    return Done(call.types.response(results=results))


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


def _altered_result(call: Call, name: str, problem: _Problem | None) -> Any:
    error, sentence = problem or (Error.NONE, None)
    return call.types.make(
        "AlterUserScramCredentialsResult", user=name, error_code=error, error_message=sentence
    )


APIS = (
    SASL_HANDSHAKE,
    SASL_AUTHENTICATE,
    Api(
        50, "DescribeUserScramCredentials", 0, 0, describe_user_scram_credentials,
        needs=(on_cluster(Operation.DESCRIBE, None),), errors={"users": "results"},
    ),
    Api(
        51, "AlterUserScramCredentials", 0, 0, alter_user_scram_credentials,
        needs=(on_cluster(Operation.ALTER),), errors={"deletions": "results", "upsertions": "results"},
        error_names={"user": "name"},
    ),
)  # fmt: skip
