"""SaslHandshake (key 17), versions 0-1: which mechanism the client wants (KIP-43).

v0: the mechanism's tokens follow as bare frames; v1: in SaslAuthenticate (KIP-152).
`security.authenticator` answers it. This handler sees it only if the listener wants no authentication, or if
the client has authenticated already: the request is out of place.
"""

from __future__ import annotations

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.coordinator.errors import Error


def handle(_state: BrokerState, call: Call) -> Done:
    return Done(call.types.make("SaslHandshakeResponse", error_code=Error.ILLEGAL_SASL_STATE, mechanisms=()))


API = Api(17, "SaslHandshake", 0, 1, handle)
