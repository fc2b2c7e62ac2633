"""Transcripts: commands to a coordinator in virtual time, each with what the coordinator did.

    # a comment
    join a version=3
    ----
    one event or answer a line

Clients have names. Like a real client, each remembers its options, its member id, its generation and its
assignment. The requests are those of `groupstorm script` with its defaults, made and sent by its `Driver`;
member ids are ``NAME#1``, ``NAME#2``, ... instead of UUIDs. After each command every timer of that instant
fires.

The environment
* ``options group.initial.rebalance.delay.ms=3000``: the broker's options, before all other commands
* ``advance 3s`` (``250ms``, ``5m``) ``[heartbeats=a,b]``: time passes; meanwhile a and b send a heartbeat
  every 3 s, shown only if its answer is another one than before
* ``restart NAME``: the client's process restarts and has no member id; ``stop NAME``: it sends nothing more
* ``stabilize [NAME ...]``: clients do what Kafka's client does next (join with the id that they were given,
  sync, join again if a heartbeat says so) until none of them has anything to do
* ``move-coordinator``: another coordinator takes the group over
* ``quietly COMMAND``: without its output

Requests of a client
* ``join NAME [version=9] [instance=I] [session=10s] [rebalance=60s] [type=consumer] [protocols=range]
  [topics=t] [owned=t-0,t-1]``: a later join repeats these options, except ``owned``
* ``sync NAME [MEMBER=t-0,t-1 ...]``: a leader that names no assignments deals the partitions of t in turn
* ``heartbeat NAME``, ``leave NAME``, ``commit NAME t-0=5``, ``fetch NAME t-0 [require-stable]``
* ``txn-commit NAME producer=7 t-0=5``, ``end-transaction producer=7 commit|abort``
* each takes ``version=N``, ``member=ID``, ``generation=N`` (``-1`` and ``+1``: below and above the client's
  own) and ``append-error=ERROR``: the records that the request makes cannot be appended

Requests of an administrator
* ``remove-instances i1 i2``, ``delete-group``, ``delete-offsets t-0``, ``describe``, ``list``
* ``show``: the group as its ``repr``

Members of the new protocol: `tests.coordinator.consumer_commands`.

Output: events as in a trace (`docs/trace.md`), ``-> NAME: REQUEST ERROR ...`` for an answer, ``at N ms``
before lines of another time than the command's, ``ok`` if nothing happens.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from typing import Any

from groupstorm.assignors.userdata import encode_assignment
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.messages import (
    CommittedOffset,
    DeleteGroup,
    ListGroups,
    OffsetDelete,
    Request,
    TxnOffsetCommit,
)
from groupstorm.coordinator.script.clients import Client, Names
from groupstorm.coordinator.script.driver import Driver, Outcome, Sent
from tests.coordinator.consumer_commands import ConsumerCommands
from tests.coordinator.transcript_lines import (
    CommandLine,
    answer_lines,
    by_topic,
    event_line,
    milliseconds,
    value_of,
)

_GROUP = "g"
_TOPICS = {"t": 4}
_HEARTBEAT_INTERVAL_MS = 3_000
#: Options of a join that later joins of the client repeat.
_KEPT = ("version", "instance", "session", "rebalance", "type", "protocols", "topics")
#: Answers after which Kafka's client joins (again).
_JOIN_AFTER = ("MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION")
_STABILIZE_MAX = 200


def play(text: str) -> str:
    """The transcript with the output that every command has now."""
    environment = _Environment()
    blocks = []
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        head = lines[: lines.index("----")] if "----" in lines else lines
        commands = [line for line in head if not line.startswith("#")]
        output = [line for command in commands for line in environment.run(command)]
        blocks.append("\n".join([*head, "----", *output]) if commands else block)
    return "\n\n".join(blocks) + "\n"


def as_script(text: str, script_id: str) -> dict[str, Any]:
    """The commands as a script of `groupstorm script`, up to the first request that scripts do not have."""
    environment = _Environment()
    for block in text.strip("\n").split("\n\n"):
        for line in block.partition("\n----")[0].split("\n"):
            if not line.startswith("#"):
                environment.run(line)
    config = {**environment.options, "topics": _TOPICS}
    return {"id": script_id, "config": config, "steps": environment.steps}


_ADMIN = CommandLine("", ["admin"], {})


class _Environment:
    """One coordinator with its clients, and the lines that a command brought about."""

    def __init__(self) -> None:
        self._drawn: Counter[str] = Counter()
        self._kept: dict[str, dict[str, str]] = {}
        self._running: dict[str, bool] = {}
        self._tokens = 0
        self.options: dict[str, str] = {}
        #: The requests and advances so far as steps of a script; complete until a request has no step.
        self.steps: list[dict[str, Any]] = []
        self._has_steps = True
        self._lines: list[str] = []
        self._shown_ms = 0
        self._driver = self._new_driver(CoordinatorConfig())
        self._commands: dict[str, Callable[[CommandLine], None]] = {
            "options": self._options,
            "advance": self._advance,
            "restart": self._restart,
            "stop": self._stop,
            "stabilize": self._stabilize,
            "move-coordinator": self._move_coordinator,
            "show": self._show,
            "join": self._join,
            "sync": self._sync,
            "heartbeat": self._send_step,
            "leave": self._leave,
            "commit": self._commit,
            "fetch": self._fetch,
            "txn-commit": self._txn_commit,
            "end-transaction": self._end_transaction,
            "remove-instances": self._remove_instances,
            "delete-group": self._delete_group,
            "delete-offsets": self._delete_offsets,
            "describe": self._describe,
            "list": self._list,
        }
        self._commands |= ConsumerCommands(self._send_consumer_step, self._send).commands

    def _new_driver(self, config: CoordinatorConfig) -> Driver:
        driver = Driver(
            config, names=Names("transcript"), member_ids=self._draw, topics=_TOPICS, keeps_records=True
        )
        driver.coordinator.load((), 0)  # of an empty log; the search for expired offsets starts
        return driver

    def _draw(self, prefix: str) -> str:
        self._drawn[prefix] += 1
        return f"{prefix}#{self._drawn[prefix]}"

    def run(self, line: str) -> list[str]:
        """Run one command line; the lines of its output."""
        self._lines = []
        self._shown_ms = self._driver.now_ms
        quiet = line.startswith("quietly ")
        words = CommandLine.of(line.removeprefix("quietly "))
        assert words.command in self._commands, f"{words.command} is no command"
        self._commands[words.command](words)
        return ["ok"] if quiet or not self._lines else self._lines

    def _add(self, *lines: str) -> None:
        now_ms = self._driver.now_ms
        if lines and now_ms != self._shown_ms:
            self._lines.append(f"at {now_ms} ms")
            self._shown_ms = now_ms
        self._lines += lines

    def _keep(self, outcome: Outcome) -> None:
        self._add(*(line for event in outcome.events if (line := event_line(event))))
        for sent, response in outcome.answers:
            who = f"{sent.label}: " if sent.label else ""
            self._add(*answer_lines(f"-> {who}{sent.kind.removesuffix('_offsets')}", response))

    def _fire_due(self) -> None:
        for outcome in self._driver.fire_due():
            self._keep(outcome)

    # the environment

    def _options(self, words: CommandLine) -> None:
        assert not self._tokens, "options come before all other commands"
        self.options = words.options
        self._driver = self._new_driver(CoordinatorConfig.from_mapping(words.options))

    def _advance(self, words: CommandLine) -> None:
        (duration,) = words.names
        beating = [name for name in words.options.get("heartbeats", "").split(",") if name]
        until_ms = self._driver.now_ms + milliseconds(duration)
        while self._driver.now_ms < until_ms:
            left_ms = until_ms - self._driver.now_ms
            duration_ms = min(left_ms, _HEARTBEAT_INTERVAL_MS) if beating else left_ms
            self._note_step({"op": "advance", "ms": duration_ms})
            for outcome in self._driver.advance(duration_ms):
                self._keep(outcome)
            for name in beating:
                self._beat(name)

    def _beat(self, name: str) -> None:
        client = self._driver.clients.get(name)
        lines, shown_ms, last = len(self._lines), self._shown_ms, client.last
        self._send_step(CommandLine("heartbeat", [name], {}))
        if client.last in ("heartbeat:NONE", last):
            del self._lines[lines:]
            self._shown_ms = shown_ms

    def _restart(self, words: CommandLine) -> None:
        (name,) = words.names
        client = self._driver.clients.get(name)
        client.member, client.generation, client.last = "", -1, None

    def _stop(self, words: CommandLine) -> None:
        (name,) = words.names
        self._running[name] = False

    def _move_coordinator(self, _: CommandLine) -> None:
        driver, self._has_steps = self._driver, False
        self._keep(driver.receive(driver.coordinator.move([_GROUP], driver.now_ms)))

    def _show(self, _: CommandLine) -> None:
        group = self._driver.coordinator.group(_GROUP)
        self._add("no group" if group is None else repr(group))

    def _stabilize(self, words: CommandLine) -> None:
        for _ in range(_STABILIZE_MAX):
            names = words.names or [name for name, running in self._running.items() if running]
            commands = [(self._next_command(name), name) for name in names]
            if not any(command for command, _ in commands):
                return
            for name in names:
                if command := self._next_command(name):
                    self._commands[command](CommandLine(command, [name], {}))
        raise AssertionError("the clients never have nothing to do")

    def _next_command(self, name: str) -> str | None:
        """Return the next command of Kafka's client; heartbeats that would be answered NONE are left out."""
        client = self._driver.clients.get(name)
        kind, _, error = (client.last or "").partition(":")
        if (kind, error) == ("join", "NONE"):
            return "sync"
        if error in _JOIN_AFTER or (error == "NOT_COORDINATOR" and kind != "heartbeat"):
            return "join"
        return "heartbeat" if error == "NONE" and self._has_news(client) else None

    def _has_news(self, client: Client) -> bool:
        group = self._driver.coordinator.group(_GROUP)
        if isinstance(group, ConsumerGroup):
            member = group.members.get(client.member)
            return member is None or not member.is_reconciled_to(group.assignment_epoch)
        return (
            group is None
            or client.member not in group.members
            or group.state.value == "PreparingRebalance"
            or group.generation != client.generation
        )

    # requests of a client

    def _token(self) -> int:
        self._tokens += 1
        return self._tokens

    def _send_step(self, words: CommandLine, **fields: Any) -> None:
        (name,) = words.names
        instance = self._kept.get(name, {}).get("instance")
        step = {"op": words.command, "as": name, "client_id": name, "instance": instance, **fields}
        if words.command in ("describe", "fetch_offsets"):
            del step["instance"], step["client_id"]
        for option in ("member", "generation", "version"):
            if option in words.options:
                step[option] = value_of(words.options[option])
        if "append-error" in words.options:
            step["append_error"] = words.options["append-error"]
        if step.get("member") == "$" and not self._driver.clients.get(name).member:
            step["member"] = ""  # a process that has restarted knows no id
        self._note_step(step)
        self._keep(self._driver.send_step(step, self._token()))
        self._fire_due()

    def _send_consumer_step(self, op: str, name: str, fields: dict[str, Any]) -> None:
        step = {"op": op, "as": name, "client_id": name, **fields}
        self._note_step(step)
        self._keep(self._driver.send_step(step, self._token()))
        self._fire_due()

    def _note_step(self, step: dict[str, Any]) -> None:
        if self._has_steps:
            self.steps.append(step)

    def _send(self, kind: str, label: str, request: Request) -> None:
        """A request that is no step of a script."""
        self._has_steps = False
        self._keep(self._driver.send(Sent(self._token(), kind, label, request)))
        self._fire_due()

    def _join(self, words: CommandLine) -> None:
        (name,) = words.names
        self._running[name] = True
        kept = self._kept.setdefault(name, {})
        kept.update((option, value) for option, value in words.options.items() if option in _KEPT)
        subscription: dict[str, Any] = {"topics": kept.get("topics", "t").split(",")}
        if "owned" in words.options:
            owned = by_topic(words.options["owned"].split(","))
            subscription |= {"version": 3, "owned": owned, "generation": "$"}
        protocols = [[protocol, subscription] for protocol in kept.get("protocols", "range").split(",")]
        self._send_step(
            words,
            member="$",
            version=int(kept.get("version", "9")),
            type=kept.get("type", "consumer"),
            session=milliseconds(kept.get("session", "10s")),
            rebalance=milliseconds(kept.get("rebalance", "60s")),
            protocols=protocols,
        )

    def _sync(self, words: CommandLine) -> None:
        named = {name: value for name, value in words.options.items() if name in self._running}
        if not named:
            self._send_step(words, assignments="auto-consumer")
            return
        plan = {}
        for name, partitions in named.items():
            assigned = [
                (topic, number)
                for topic, numbers in by_topic(partitions.split(",")).items()
                for number in numbers
            ]
            plan["$" + name] = b64encode(encode_assignment(assigned, None, 1)).decode()
        self._send_step(words, assignments=plan)

    def _leave(self, words: CommandLine) -> None:
        self._running[words.names[0]] = False
        self._send_step(words)

    def _commit(self, words: CommandLine) -> None:
        self._send_step(words, offsets=words.offsets())

    def _fetch(self, words: CommandLine) -> None:
        name, *partitions = words.names
        require_stable = "require-stable" in partitions
        topics = by_topic(partition for partition in partitions if partition != "require-stable") or None
        fetch = CommandLine("fetch_offsets", [name], words.options)
        if not require_stable:
            self._send_step(fetch, topics=topics)
            return
        request = self._driver.request({"op": "fetch_offsets", "as": name, "topics": topics}, name)
        self._send("fetch_offsets", name, request._replace(require_stable=True))  # type: ignore[call-arg]

    def _txn_commit(self, words: CommandLine) -> None:
        (name,) = words.names
        generation = value_of(words.options.get("generation", "+0"))
        clients = self._driver.clients
        request = TxnOffsetCommit(
            _GROUP,
            producer_id=int(words.options["producer"]),
            member_id=clients.get(name).member,
            group_instance_id=self._kept.get(name, {}).get("instance"),
            generation=clients.number("generation", name, generation, lambda client: client.generation),
            offsets={
                topic: {int(number): CommittedOffset(offset) for number, offset in partitions.items()}
                for topic, partitions in words.offsets().items()
            },
            version=3,
            client_id=name,
        )
        self._send("txn-commit", name, request)

    def _end_transaction(self, words: CommandLine) -> None:
        (end,) = words.names
        driver, self._has_steps = self._driver, False
        effects = driver.coordinator.end_transaction(
            int(words.options["producer"]), end == "commit", driver.now_ms
        )
        self._keep(driver.receive(effects))

    # requests of an administrator

    def _remove_instances(self, words: CommandLine) -> None:
        members = [["", instance] for instance in words.names]
        self._send_step(_ADMIN._replace(command="leave"), members=members)

    def _delete_group(self, _: CommandLine) -> None:
        self._send("delete-group", "admin", DeleteGroup(_GROUP, "admin"))

    def _delete_offsets(self, words: CommandLine) -> None:
        topics = {topic: tuple(numbers) for topic, numbers in by_topic(words.names).items()}
        self._send("delete-offsets", "admin", OffsetDelete(_GROUP, topics, "admin"))

    def _describe(self, words: CommandLine) -> None:
        self._send_step(_ADMIN._replace(command="describe", options=words.options))

    def _list(self, words: CommandLine) -> None:
        self._send("list", "admin", ListGroups(tuple(words.names)))
