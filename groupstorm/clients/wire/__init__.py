"""A consumer over TCP: asyncio drives a member of either group protocol, on the emulator or on a real broker.

`WireConsumer` (`consumer.py`) is one consumer process and emits the events of a storm's consumer. Its parts:

* `connection`: sockets and frames; `cluster`: brokers, partition leaders, shared connections;
* `coordinator_link`: the connection to the group's coordinator; `group_requests`: its requests as bytes;
* `membership_driver`: what the drivers of both group protocols share, from `parts`; `member_status`: what the
  shared parts see of a member;
* `classic_driver`: the classic protocol (`groupstorm.clients.membership`), with `heartbeats` and
  `heartbeat_timers`: the heartbeat thread; `poll_loop`: the application's polls; `leader`: its assignment;
* `group_driver`: the consumer protocol (`groupstorm.clients.consumer_group`), with `group_polling` and
  `group_status`;
* `topic_watch`: topic metadata; `rebalance_callbacks`: the listener;
* `positions`, `offsets`, `position_search`, `commits`: positions and committed offsets;
* `admin`: topics and groups of a run; `security`, `client_properties`: TLS and SASL.
"""

from __future__ import annotations
