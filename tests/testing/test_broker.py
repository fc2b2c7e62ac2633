"""`groupstorm.broker`: its arguments, its views, its end."""

from __future__ import annotations

import importlib
import json
import socket
import sys
import threading
from pathlib import Path

import pytest

import groupstorm
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from tests.broker import wire
from tests.broker.wire import RawClient
from tests.command import ROOT
from tests.processes import run_process
from tests.testing.members import AT_ONCE, GROUP, RawMember, address, topics_of


def test_topics_settings_and_one_made_later() -> None:
    with groupstorm.broker({"orders": 6}, {"num.partitions": 3, "auto.create.topics.enable": True}) as broker:
        assert broker.topic("orders") == "orders"
        assert broker.create_topic("payments", 2) == "payments"
        assert topics_of(broker) == {"orders": 6, "payments": 2}
        with pytest.raises(InputError, match="payments"):
            broker.create_topic("payments", 2)


def test_the_function_stays_beside_the_room_of_the_same_name() -> None:
    """Importing a module of the package `groupstorm.broker` does not replace the function."""
    importlib.import_module("groupstorm.broker.shell")
    assert callable(groupstorm.broker)
    assert sys.modules["groupstorm.broker"] is not groupstorm.broker  # type: ignore[comparison-overlap]


def test_a_group_is_waited_for_while_its_broker_runs() -> None:
    with groupstorm.broker() as broker:
        group = broker.group(GROUP)
    with pytest.raises(InputError, match="group readers: its broker does not run: wait inside `with`"):
        group.wait_stable()


async def test_async_form() -> None:
    async with groupstorm.broker(topics={"orders": 2}) as broker:
        assert topics_of(broker) == {"orders": 2}
        place = address(broker)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place, timeout=1)


def test_nothing_is_left_running() -> None:
    before = threading.active_count()
    with groupstorm.broker(control=True) as broker, RawMember(broker) as member:
        member.send_join()
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_several_brokers_and_an_older_release() -> None:
    with groupstorm.broker(brokers=3, as_version="2.8") as broker:
        assert len(broker.bootstrap_servers.split(",")) == 3
        with RawClient(address(broker, 2)) as client:
            answer = client.ask(wire.API_VERSIONS, 0)
    highest = {one.api_key: one.max_version for one in answer.api_keys}
    assert highest[wire.FETCH] == 12


def test_a_chosen_port_and_a_port_in_use() -> None:
    with groupstorm.broker() as broker:
        port = address(broker)[1]
        with pytest.raises(InputError, match=f"^port: {port}: cannot listen there"):
            groupstorm.broker(port=port).start()
        with pytest.raises(InputError, match=f"^control: {port}: cannot listen there"):
            groupstorm.broker(control=port).start()
    with groupstorm.broker(port=port) as again:
        assert address(again)[1] == port


def test_events_trace_and_the_folder_tell_the_same(tmp_path: Path) -> None:
    with groupstorm.broker({"orders": 1}, AT_ONCE, trace=tmp_path / "trace") as broker:
        with RawMember(broker) as member:
            member.join_alone([0])
        assert broker.trace[-1]["state"] == "Stable"
    rows = broker.trace
    assert rows[-1]["event"] == "group_deleted", "it can be asked what happened when it is gone"
    assert [time_us for time_us, _ in broker.events] == [row["time_us"] for row in rows]
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    (file,) = (tmp_path / "trace").glob("*.jsonl")
    assert [json.loads(line) for line in file.read_text().splitlines()] == json.loads(json.dumps(rows))


def test_committed_offsets() -> None:
    with groupstorm.broker({"orders": 2, "orders-1": 1}) as broker, RawClient(address(broker)) as client:
        partition = {"partition_index": 1, "committed_offset": 7, "committed_metadata": ""}
        topic = {"name": "orders", "partitions": (partition,)}
        answer = client.ask(
            wire.OFFSET_COMMIT, 5, group_id=GROUP, generation_id_or_member_epoch=-1, topics=(topic,)
        )
        assert answer.topics[0].partitions[0].error_code == Error.NONE
        group = broker.group(GROUP)
        assert (group.committed("orders", 1), group.committed("orders", 0)) == (7, None)
        assert group.committed("orders-1", 0) is None
        for name, number, missing in (("order", 0, "topic"), ("orders", 2, "partition")):
            with pytest.raises(InputError, match=f"^{name}-{number}: there is no such {missing}$"):
                group.committed(name, number)
        assert (group.state, group.generation, group.members) == ("Empty", 0, ())


def test_importing_groupstorm_is_cheap() -> None:
    code = (
        "import sys; before = set(sys.modules); import groupstorm; "
        "ours = {'groupstorm', 'groupstorm.version'}; "
        "import json; print(json.dumps(sorted(set(sys.modules) - before - ours)))"
    )
    result = run_process([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = json.loads(result.stdout)
    assert not {name for name in loaded if name.startswith(("groupstorm.", "asyncio", "kio", "typer"))}
