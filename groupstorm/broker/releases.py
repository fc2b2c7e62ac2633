"""The releases of Kafka whose versions can be advertised. Each API says its own (`Api.older`).

Source: the message schemas of those releases (`validVersions`).
"""

from __future__ import annotations

#: All APIs in all versions that are served, which are Kafka 4.3's.
NEWEST = "4.x"
RELEASES = ("2.8", "3.9", NEWEST)


def transaction_version(release: str) -> int:
    """The level of the feature transaction.version: 2 since Kafka 4.0 (KIP-890), none before."""
    return 2 if release == NEWEST else 0
