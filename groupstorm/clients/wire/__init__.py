"""A consumer over TCP: asyncio carries `groupstorm.clients.membership` to the emulator or to a real broker.

`WireConsumer` (`consumer.py`) is one consumer process and tells the same events as one of a storm.
Below it: `connection.py` sockets and frames, `cluster.py` which brokers there are, `topic_watch.py` topic
metadata, `coordinator_link.py` the way to the coordinator, `heartbeats.py` what the client's heartbeat
thread does, `positions.py` and `offsets.py` where processing stands.
"""

from __future__ import annotations
