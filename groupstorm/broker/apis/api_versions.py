"""ApiVersions and UpdateFeatures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import Api, Call, Done
from groupstorm.broker.apis.resources import on_cluster
from groupstorm.broker.authorization import Operation
from groupstorm.broker.config import NEWEST
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import ResponseTypes


class Feature(NamedTuple):
    """A feature of a cluster: the levels that its brokers support, and its own, which is 0 if it is off."""

    least: int
    most: int
    level: int


#: The features of Kafka 4.4.0.
_FEATURES: Mapping[str, Feature] = {
    "eligible.leader.replicas.version": Feature(0, 1, 1),
    "group.version": Feature(0, 1, 1),
    "kraft.version": Feature(0, 1, 0),
    "metadata.version": Feature(7, 33, 33),
    "share.version": Feature(0, 2, 2),
    "streams.version": Feature(0, 1, 1),
    "transaction.version": Feature(0, 2, 2),
}


def features(release: str) -> Mapping[str, Feature]:
    """The features of this release by name; none before Kafka 4.0."""
    return _FEATURES if release == NEWEST else {}


_FIRST_WITH_FEATURES = 3
_NO_NODE = -1
_FIRST_WITH_LOWEST_LEVEL_0 = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(state: BrokerState, call: Call) -> Done:
    """ApiVersions (key 18), versions 0-5.

    * The response always has header version 0, so that a client can read it before it knows anything
      (KIP-511); kio's schema says so too.
    * An unknown version is answered in version 0 with UNSUPPORTED_VERSION and the range of this API
      alone; the request is not read.
    * v3: the client's software name and version must look like ones, else INVALID_REQUEST. The answer names
      the features (KIP-584). v4: supported features whose lowest level is 0 (KAFKA-17011).
    * v5: the client may name the cluster and the broker that it expects (KIP-1242).
    * Produce is advertised from 0 though 3 is the lowest served: older librdkafka reads "no Produce 0" as
      "cannot compress" (KAFKA-18659).
    """
    message = call.message
    if call.version >= _FIRST_WITH_FEATURES and not (
        _SOFTWARE.fullmatch(message.client_software_name)
        and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return Done(call.types.response(error_code=Error.INVALID_REQUEST, api_keys=()))
    error = _check_expected(state, call)
    if error is not Error.NONE:
        return Done(call.types.response(error_code=error, api_keys=()))
    keys = tuple(
        call.types.make("ApiVersion", api_key=key, min_version=least, max_version=most)
        for key, (least, most) in sorted(state.versions.items())
    )
    named = _named_features(call, features(state.release))
    return Done(call.types.response(error_code=Error.NONE, api_keys=keys, **named))


API_VERSIONS = Api(18, "ApiVersions", 0, 5, api_versions, older=(3, 4))


def _check_expected(state: BrokerState, call: Call) -> Error:
    """A client that expects another cluster or broker has to begin anew; it names both, or none of them."""
    cluster_id, node = getattr(call.message, "cluster_id", None), getattr(call.message, "node_id", _NO_NODE)
    if cluster_id is None and node == _NO_NODE:
        return Error.NONE
    if cluster_id is None or node == _NO_NODE:
        return Error.INVALID_REQUEST
    is_here = (cluster_id, node) == (state.cluster_id, call.node)
    return Error.NONE if is_here else Error.REBOOTSTRAP_REQUIRED


def _named_features(call: Call, known: Mapping[str, Feature]) -> dict[str, Any]:
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
    own_range = types.make("ApiVersion", api_key=API_VERSIONS.key, min_version=0, max_version=max_version)
    return types.response(error_code=Error.UNSUPPORTED_VERSION, api_keys=(own_range,))


_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_ALL_FAILED = "The update failed for all features since the following feature had an error: "


def update_features(state: BrokerState, call: Call) -> Done:
    """UpdateFeatures (key 57), versions 0-2: features stay as they are (KIP-584).

    Needs ALTER on the cluster. An update to the present level succeeds, as in Kafka; others are refused for
    all features. v1: the type of the upgrade. v2: no result of each feature.
    """
    problems = (_problem(state, one) for one in call.message.feature_updates)
    problem = next((one for one in problems if one is not None), None)
    error = Error.NONE if problem is None else Error.INVALID_UPDATE_VERSION
    sentence = None if problem is None else _ALL_FAILED + problem
    results = tuple(
        call.types.make(
            "UpdatableFeatureResult", feature=one.feature, error_code=Error.NONE, error_message=None
        )
        for one in (call.message.feature_updates if problem is None and call.version < 2 else ())
    )
    return Done(call.types.response(error_code=error, error_message=sentence, results=results))


def _problem(state: BrokerState, asked: Any) -> str | None:
    """Kafka's sentence about an update that it refuses, or ours (FeatureControlManager.updateFeature)."""
    level = asked.max_version_level
    upgrade = getattr(asked, "upgrade_type", None)
    if upgrade is None:
        upgrade = _SAFE_DOWNGRADE if getattr(asked, "allow_downgrade", False) else _UPGRADE
    wrong = f"Invalid update version {level} for feature {asked.feature}. "
    node = state.cluster.controller
    known = features(state.release).get(asked.feature)
    if known is None:
        return f"{wrong}Local controller {node} does not support this feature."
    if upgrade not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return f"{wrong}The controller does not support the given upgrade type."
    if not known.least <= level <= known.most:
        return f"{wrong}Local controller {node} only supports versions {known.least}-{known.most}"
    if level < known.level and upgrade == _UPGRADE:
        return (
            f"{wrong}Can't downgrade the version of this feature without setting the upgrade type to either "
            "safe or unsafe downgrade."
        )
    return None if level == known.level else f"{wrong}The features of this broker cannot change."


APIS = (
    API_VERSIONS,
    Api(57, "UpdateFeatures", 0, 2, update_features, older=(0, 1), needs=(on_cluster(Operation.ALTER),)),
)
