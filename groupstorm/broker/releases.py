"""The releases of Kafka whose versions can be advertised. Each API says its own (`Api.older`).

Source: the message schemas of those releases (`validVersions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: All APIs in all versions that are served, which are Kafka 4.3's.
NEWEST = "4.x"
RELEASES = ("2.8", "3.9", NEWEST)


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
