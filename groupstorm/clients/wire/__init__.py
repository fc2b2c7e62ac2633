"""A consumer over TCP: asyncio drives a member of either group protocol, on the emulator or on a real broker.

`WireConsumer` (`consumer.py`) is one consumer process and emits the events of a storm's consumer. Its parts:

* `connection`: sockets and frames; `cluster`: brokers, partition leaders, shared connections, topic metadata;
* `coordinator_link`: the connection to the group's coordinator; `group_requests`: its requests as bytes;
* `parts`, `membership_driver`: the common parts of the drivers of both group protocols, the application's
  polls, and the listener;
* `classic_driver`: the classic protocol (`groupstorm.clients.membership`); `heartbeats`: its thread;
* `group_driver`: the consumer protocol (`groupstorm.clients.consumer_group`);
* `positions`, `offsets`: positions and committed offsets;
* `logs`: the logs of topics;
* `admin`: topics and groups of a run; `security`: TLS and SASL.
"""

from __future__ import annotations
