"""ApiVersions (key 18), versions 0-5.

* The response always has header version 0, so that a client can read it before it knows anything
  (KIP-511); kio's schema says so too.
* An unknown version is answered in version 0 with UNSUPPORTED_VERSION and the range of this API
  alone; the request is not read.
* v3: the client's software name and version must look like ones, else INVALID_REQUEST. The answer names the
  features (KIP-584). v4: supported features whose lowest level is 0 (KAFKA-17011).
* v5: the client may name the cluster and the broker that it expects (KIP-1242).
* Produce is advertised from 0 though 3 is the lowest served: older librdkafka reads "no Produce 0" as
  "cannot compress" (KAFKA-18659).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.releases import Feature
from groupstorm.broker.releases import features as features_of
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import ResponseTypes

_FIRST_WITH_FEATURES = 3
_NO_NODE = -1
_FIRST_WITH_LOWEST_LEVEL_0 = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(state: BrokerState, call: Call) -> Done:
    message = call.message
    if call.version >= _FIRST_WITH_FEATURES and not (
        _SOFTWARE.fullmatch(message.client_software_name)
        and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return Done(call.types.response(error_code=Error.INVALID_REQUEST, api_keys=()))
    error = _check_expected(state, call)
    if error is not Error.NONE:
        return Done(call.types.response(error_code=error, api_keys=()))
    keys = tuple(_range(call.types, api) for _, api in sorted(state.apis.items()))
    features = _features(call, features_of(state.release))
    return Done(call.types.response(error_code=Error.NONE, api_keys=keys, **features))


API = Api(18, "ApiVersions", 0, 5, handle, older=(3, 4))


def _check_expected(state: BrokerState, call: Call) -> Error:
    """A client that expects another cluster or broker has to begin anew; it names both, or none of them."""
    cluster_id, node = getattr(call.message, "cluster_id", None), getattr(call.message, "node_id", _NO_NODE)
    if cluster_id is None and node == _NO_NODE:
        return Error.NONE
    if cluster_id is None or node == _NO_NODE:
        return Error.INVALID_REQUEST
    is_here = (cluster_id, node) == (state.cluster_id, call.node)
    return Error.NONE if is_here else Error.REBOOTSTRAP_REQUIRED


def _features(call: Call, known: Mapping[str, Feature]) -> dict[str, Any]:
    if call.version < _FIRST_WITH_FEATURES or not known:
        return {}
    # a lowest level of 0 is more than clients of version 3 can read
    least = 0 if call.version >= _FIRST_WITH_LOWEST_LEVEL_0 else 1
    make = call.types.make
    supported = tuple(
        make("SupportedFeatureKey", name=name, min_version=one.least, max_version=one.most)
        for name, one in known.items()
        if one.least >= least
    )
    finalized = tuple(
        make("FinalizedFeatureKey", name=name, max_version_level=one.level, min_version_level=one.level)
        for name, one in known.items()
        if one.level
    )
    return {
        "supported_features": supported,
        "finalized_features_epoch": 0,
        "finalized_features": finalized,
    }


def unsupported_version(types: ResponseTypes, max_version: int) -> Any:
    """The response to an unknown version; ``types``: those of version 0, ``max_version``: the highest one."""
    own_range = types.make("ApiVersion", api_key=API.key, min_version=0, max_version=max_version)
    return types.response(error_code=Error.UNSUPPORTED_VERSION, api_keys=(own_range,))


def _range(types: ResponseTypes, api: Api) -> Any:
    least = api.min_version if api.advertised_min_version is None else api.advertised_min_version
    return types.make("ApiVersion", api_key=api.key, min_version=least, max_version=api.max_version)
