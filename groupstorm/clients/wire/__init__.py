"""A consumer over TCP: asyncio drives `groupstorm.clients.membership` on the emulator or on a real broker.

`WireConsumer` (`consumer.py`) is one consumer process and emits the events of a storm's consumer. Its parts:

* `connection`: sockets and frames; `cluster`: brokers, partition leaders, shared connections;
* `coordinator_link`: the connection to the group's coordinator; `group_requests`: its requests as bytes;
* `heartbeats`, `heartbeat_timers`: the client's heartbeat thread; `poll_loop`: the application's polls;
* `topic_watch`: topic metadata; `leader`: the leader's assignment; `rebalance_callbacks`: the listener;
* `positions`, `offsets`, `position_search`, `commits`: positions and committed offsets;
* `admin`: topics and groups of a run; `security`, `client_properties`: TLS and SASL.
"""

from __future__ import annotations
