"""The highest versions that older releases of Kafka advertise.

Source: the message schemas of those releases (`validVersions`). The lowest versions stay ours: a client of
such a release's time uses the highest that both have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from groupstorm.broker.apis.api import Api

#: API key -> highest version; the release does not have the other APIs.
_HIGHEST: Mapping[str, Mapping[int, int]] = {
    "2.8": {
        0: 9,
        1: 12,
        2: 6,
        3: 11,
        8: 8,
        9: 7,
        10: 3,
        11: 7,
        12: 4,
        13: 4,
        14: 5,
        15: 5,
        16: 4,
        17: 1,
        18: 3,
        19: 7,
        20: 6,
        21: 2,
        22: 4,
        23: 4,
        24: 3,
        25: 3,
        26: 3,
        28: 3,
        29: 2,
        30: 2,
        31: 2,
        32: 4,
        33: 2,
        36: 2,
        37: 3,
        42: 2,
        44: 1,
        47: 0,
        48: 1,
        49: 1,
        50: 0,
        51: 0,
        60: 0,
    },
    "3.9": {
        0: 11,
        1: 17,
        2: 9,
        3: 12,
        8: 9,
        9: 9,
        10: 6,
        11: 9,
        12: 4,
        13: 5,
        14: 5,
        15: 5,
        16: 5,
        17: 1,
        18: 4,
        19: 7,
        20: 6,
        21: 2,
        22: 5,
        23: 4,
        24: 5,
        25: 4,
        26: 4,
        28: 4,
        29: 3,
        30: 3,
        31: 3,
        32: 4,
        33: 2,
        36: 2,
        37: 3,
        42: 2,
        44: 1,
        47: 0,
        48: 1,
        49: 1,
        50: 0,
        51: 0,
        60: 1,
    },
}
#: All APIs in all versions that are served, which are Kafka 4.3's.
NEWEST = "4.x"
RELEASES = (*_HIGHEST, NEWEST)


def capped(apis: Iterable[Api], release: str) -> Iterator[Api]:
    """The APIs, with the versions of this release as their highest ones."""
    if release == NEWEST:
        yield from apis
        return
    highest = _HIGHEST[release]
    for api in apis:
        if api.key in highest:
            yield dataclasses.replace(api, max_version=min(api.max_version, highest[api.key]))


def transaction_version(release: str) -> int:
    """The level of the feature transaction.version: 2 since Kafka 4.0 (KIP-890), none before."""
    return 2 if release == NEWEST else 0
