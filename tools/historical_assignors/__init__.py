"""Bugs of Kafka's consumer assignors as histories of a group, before and after the fix.

`bug_histories` reads the histories, which are data (`histories/*.yaml`). `released` has the assignors of
releases, `recordings` the answers of Kafka's own classes of those releases. `comparison` plays a history
with both and renders it.
"""

from __future__ import annotations
