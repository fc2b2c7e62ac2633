"""ApiVersions (key 18), versions 0-4.

* The response always has header version 0, so that a client can read it before it knows anything
  (KIP-511); kio's schema says so too.
* An unknown version is answered in version 0 with UNSUPPORTED_VERSION and the range of this API
  alone; the request is not read.
* v3: the client's software name and version must look like ones, else INVALID_REQUEST.
* Produce is advertised from 0 though 3 is the lowest served: older librdkafka reads "no Produce 0" as
  "cannot compress" (KAFKA-18659).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis.api import Api, BrokerState, Call, Done, Handler
from groupstorm.coordinator.server.codec import ResponseTypes

KEY = 18
MAX_VERSION = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(served: Mapping[int, Api]) -> Api:
    """The API itself; ``served`` is read when a request comes, since it holds this API too."""

    def handle(_state: BrokerState, call: Call) -> Done:
        message = call.message
        if call.version >= 3 and not (
            _SOFTWARE.fullmatch(message.client_software_name)
            and _SOFTWARE.fullmatch(message.client_software_version)
        ):
            return Done(call.types.response(error_code=Error.INVALID_REQUEST, api_keys=()))
        keys = tuple(_range(call.types, api) for _, api in sorted(served.items()))
        return Done(call.types.response(error_code=Error.NONE, api_keys=keys))

    checked: Handler = handle
    return Api(KEY, "ApiVersions", 0, MAX_VERSION, checked)


def unsupported_version(types: ResponseTypes) -> Any:
    """The answer to a version that is not known; ``types`` are those of version 0."""
    own_range = types.make("ApiVersion", api_key=KEY, min_version=0, max_version=MAX_VERSION)
    return types.response(error_code=Error.UNSUPPORTED_VERSION, api_keys=(own_range,))


def _range(types: ResponseTypes, api: Api) -> Any:
    least = api.min_version if api.advertised_min_version is None else api.advertised_min_version
    return types.make("ApiVersion", api_key=api.key, min_version=least, max_version=api.max_version)
