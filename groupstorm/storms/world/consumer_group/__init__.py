"""Processes whose consumers are members of a consumer group (KIP-848, `group.protocol=consumer`).

* `process`: one process, which carries out what a `ConsumerGroupMember` asks for;
* `quiet_heartbeats`: heartbeats that are computed as long as nothing happens, and what disturbs them;
* `network_thread`: when the client's network thread runs, and the member as the parts see it that serve both
  protocols.
"""

from __future__ import annotations
