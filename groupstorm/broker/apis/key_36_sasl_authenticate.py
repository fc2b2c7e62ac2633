"""SaslAuthenticate (key 36), versions 0-2: a token of the mechanism (KIP-152).

v1: the answer says how long the session lasts (KIP-368). v2: flexible.
It is answered before it gets here (`security.authenticator`); if nothing is to be proved, or everything is
already, it is out of place.
"""

from __future__ import annotations

import datetime

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.coordinator.errors import Error


def handle(_state: BrokerState, call: Call) -> Done:
    response = call.types.make(
        "SaslAuthenticateResponse",
        error_code=Error.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
        session_lifetime=datetime.timedelta(0),
    )
    return Done(response)


API = Api(36, "SaslAuthenticate", 0, 2, handle)
