"""A broker that speaks Kafka's protocol over TCP, with its topics in memory and its groups emulated.

`broker.Broker` decides, without sockets and clocks: a frame and `now` in, responses and events out. `shell`
is the asyncio shell around it: listeners, `connection`s, one timer. `service` is `groupstorm serve`,
`embedded` a broker inside a test's process. `apis/` has a file for each subject of APIs.
"""

from __future__ import annotations
