"""Commands of transcripts for members of the new protocol (KIP-848).

* ``consume NAME [instance=I] [topics=t] [regex=R] [rebalance=60s] [assignor=A]``: a process starts and joins;
  each start has an id of its own, ``NAME.1``, ``NAME.2``, ...
* ``beat NAME ... [owned=t-0,t-1|none] [epoch=-1] [member=ID] [topics=t]``: a heartbeat of each; a member says
  that it owns what its last assignment said, unless ``owned`` says otherwise; ``topics``: it subscribes anew
* ``quit NAME [for-a-while]``: the member leaves; a static one may come back and keep its partitions
* ``describe-consumer``: ConsumerGroupDescribe
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from groupstorm.coordinator.messages import DescribeConsumerGroup, Request
from tests.coordinator.transcript_lines import CommandLine, by_topic, milliseconds, value_of

Send = Callable[[str, str, dict[str, Any]], None]


class ConsumerCommands:
    """``send_step`` sends a `chb` step of a client, ``send`` a request that is no step."""

    def __init__(self, send_step: Send, send: Callable[[str, str, Request], None]) -> None:
        self._send_step = send_step
        self._send = send
        self._starts: Counter[str] = Counter()
        self._instances: dict[str, str] = {}
        self.commands: dict[str, Callable[[CommandLine], None]] = {
            "consume": self._consume,
            "beat": self._beat,
            "quit": self._quit,
            "describe-consumer": self._describe,
        }

    def _consume(self, words: CommandLine) -> None:
        (name,) = words.names
        self._starts[name] += 1
        if "instance" in words.options:
            self._instances[name] = words.options["instance"]
        step: dict[str, Any] = {
            "member": f"{name}.{self._starts[name]}",
            "epoch": 0,
            "rebalance": milliseconds(words.options.get("rebalance", "60s")),
            "owned": {},
        }
        if "regex" in words.options:
            step["regex"] = words.options["regex"]
        else:
            step["topics"] = words.options.get("topics", "t").split(",")
        if "assignor" in words.options:
            step["assignor"] = words.options["assignor"]
        self._step(name, step)

    def _beat(self, words: CommandLine) -> None:
        owned: Any = "$"
        if "owned" in words.options:
            listed = words.options["owned"]
            owned = {} if listed == "none" else by_topic(listed.split(","))
        for name in words.names:
            said: dict[str, Any] = {
                key: value_of(words.options[key]) for key in ("epoch", "member") if key in words.options
            }
            if "topics" in words.options:
                said["topics"] = words.options["topics"].split(",")
            self._step(name, {"owned": owned, **said})

    def _quit(self, words: CommandLine) -> None:
        name, *how = words.names
        self._step(name, {"epoch": -2 if how == ["for-a-while"] else -1})

    def _step(self, name: str, fields: dict[str, Any]) -> None:
        self._send_step("chb", name, {"instance": self._instances.get(name), **fields})

    def _describe(self, _: CommandLine) -> None:
        self._send("describe", "admin", DescribeConsumerGroup("g"))
