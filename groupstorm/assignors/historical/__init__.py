"""Bugs of Kafka's consumer assignors as histories of a group, before they were mended and after.

`stories` reads the histories, which are data (`stories/*.yaml`), `released` has the assignors of releases,
`recordings` what Kafka's own classes of those releases answered, `playing` plays both sides and tells them.
"""

from __future__ import annotations
