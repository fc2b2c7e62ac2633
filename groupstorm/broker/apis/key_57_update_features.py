"""UpdateFeatures (key 57), versions 0-2: features stay as they are (KIP-584).

Needs ALTER on the cluster. An update to the present level succeeds, as in Kafka; others are refused for all
features. v1: the type of the upgrade. v2: no result of each feature.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.broker.releases import features
from groupstorm.coordinator.errors import Error

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_ALL_FAILED = "The update failed for all features since the following feature had an error: "


def handle(state: BrokerState, call: Call) -> Done:
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


API = Api(57, "UpdateFeatures", 0, 2, handle, older=(0, 1), needs=(on_cluster(Operation.ALTER),))


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
