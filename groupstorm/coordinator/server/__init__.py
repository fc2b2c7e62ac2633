"""Kafka's protocol over TCP: a broker with one node, its topics in memory, its groups emulated.

`Broker` decides and is sans-IO: a frame and `now` in, answers and events out. `Server` is the thin
asyncio shell around it: sockets, one timer, nothing else. `apis/` has one file per API key.
"""

from __future__ import annotations
