"""The pytest plugin, in small projects that pytest runs in processes of their own."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from types import ModuleType

import pytest

import groupstorm
from tests.command import PLUGIN, ROOT
from tests.forked import run_module
from tests.testing.members import topics_of

pytest_plugins = ["pytester"]


@pytest.fixture
def loaded() -> Iterator[dict[str, ModuleType]]:
    """Modules that stay: what was first imported during a test pytester takes out of `sys.modules`, though
    others hold on to it."""
    modules: dict[str, ModuleType] = {}
    yield modules
    sys.modules.update(modules)


@pytest.fixture
def project(
    loaded: dict[str, ModuleType], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.Pytester]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    yield pytester
    loaded.update(sys.modules)


#: No other plugins, and what a strict project asks for.
ALONE = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:hypothesispytest", "--strict-markers", "-rs")


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in a process of its own."""
    start = time.monotonic()
    base = f"--basetemp={project.path / 'base'}"
    done = run_module("pytest", [base, *PLUGIN, *ALONE, *arguments], project.path)
    lines = done.stdout.splitlines(), done.stderr.splitlines()
    return pytest.RunResult(done.returncode, *lines, time.monotonic() - start)


METADATA = """
import pytest
from tests.broker import wire
from tests.broker.wire import RawClient
from tests.forked import run_module
from tests.testing.members import AT_ONCE, RawMember, address

def topics(broker):
    with RawClient(address(broker)) as client:
        return {one.name: len(one.partitions) for one in client.ask(wire.METADATA, 9, topics=None).topics}
"""


def test_the_marker_configures_the_fixture_and_the_nearest_one_counts(project: pytest.Pytester) -> None:
    project.makepyfile(
        METADATA
        + """
pytestmark = pytest.mark.groupstorm(topics={"orders": 6}, settings={"num.partitions": 2})

def test_of_the_module(kafka_broker):
    assert topics(kafka_broker) == {"orders": 6}

@pytest.mark.groupstorm(topics={"payments": 1}, brokers=2, control=True)
def test_of_its_own(kafka_broker):
    assert topics(kafka_broker) == {"payments": 1}
    assert len(kafka_broker.bootstrap_servers.split(",")) == 2
    assert kafka_broker.control_url
"""
    )
    run(project).assert_outcomes(passed=2)


@pytest.mark.slow
def test_one_fixture_for_sync_and_async_tests(project: pytest.Pytester) -> None:
    """In a test that blocks, and in tests on an event loop of pytest-asyncio or of their own."""
    project.makepyfile(
        METADATA
        + """
import asyncio

pytestmark = pytest.mark.groupstorm(topics={"orders": 1}, settings=AT_ONCE)

def test_sync(kafka_broker):
    with RawMember(kafka_broker) as member:
        member.join_alone([0])
        kafka_broker.group("readers").wait_stable(members=1)

async def joined(broker):
    with RawMember(broker) as member:
        await asyncio.gather(broker.group("readers").stable(1), asyncio.to_thread(member.join_alone, [0]))

def test_an_event_loop_of_the_test(kafka_broker):
    asyncio.run(joined(kafka_broker))

@pytest.mark.asyncio
async def test_a_loop_of_pytest_asyncio(kafka_broker):
    await joined(kafka_broker)
"""
    )
    result = project.runpytest_subprocess(*PLUGIN, "--strict-markers")
    result.assert_outcomes(passed=3)


#: A marker's arguments, and the error.
WRONG = {
    "topic={'orders': 6}": "kafka_broker: topic: no argument of a broker; there are topics, settings*",
    "topics={'orders': 'six'}": "kafka_broker: topics: orders: 'six': expected the number of its partitions",
    "topics='orders'": "kafka_broker: topics: 'orders': expected {'orders': 6}, or a list*",
    "faults='yes'": "kafka_broker: faults: 'yes': expected True or False",
    "{'orders': 6}": "@pytest.mark.groupstorm takes arguments by name only*",
}


def test_a_wrong_marker_is_refused_with_one_line(project: pytest.Pytester) -> None:
    tests = [
        f"@pytest.mark.groupstorm({marker})\ndef test_{number}(kafka_broker):\n    pass\n"
        for number, marker in enumerate(WRONG)
    ]
    project.makepyfile("import pytest\n" + "".join(tests))
    result = run(project)
    result.assert_outcomes(errors=len(WRONG))
    result.stdout.fnmatch_lines(list(WRONG.values()))
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kafka", "docker/x"], "ERROR: --kafka 'docker/x': expected emulator, jvm*"),
        (
            ["--kafka=a:1"],
            "ERROR: --kafka a:1: topics and groups will be made there*say --kafka-allow-writes",
        ),
    ],
)
def test_an_option_that_means_nothing_ends_the_run(
    project: pytest.Pytester, arguments: list[str], sentence: str
) -> None:
    project.makepyfile("def test_it():\n    pass\n")
    result = run(project, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([sentence])


ON_A_CLUSTER = (
    METADATA
    + """
pytestmark = pytest.mark.groupstorm(topics={"orders": 2})

def test_names_have_a_prefix(kafka_broker):
    assert kafka_broker.topic("orders") != "orders"
    assert topics(kafka_broker)[kafka_broker.topic("orders")] == 2
    assert kafka_broker.create_topic("more", 3) == kafka_broker.topic("more")
    group = kafka_broker.group("readers")
    assert group.id.endswith("-readers")
    assert kafka_broker.group(group.id).id == group.id
    with RawMember(kafka_broker) as member:
        member.send_join(group.id)
        member.joined()
        member.sync({member.member_id: [0, 1]}, group.id, kafka_broker.topic("orders"))
        group.wait_stable(members=1, partitions=2)
        assert (group.state, group.generation) == ("Stable", None)
        (seen,) = group.members
        assert seen.partitions == (kafka_broker.topic("orders") + "-0", kafka_broker.topic("orders") + "-1")
        assert group.committed("orders", 0) is None
        with pytest.raises(AssertionError, match="was not Stable with 2 members within 0.1 s"):
            group.wait_stable(members=2, timeout_s=0.1)
        member.leave(group.id)
    group.wait_reaches("Empty")

def test_faults_go_through_a_proxy(kafka_broker):
    kafka_broker.fail("Heartbeat", "NOT_COORDINATOR")

@pytest.mark.groupstorm(faults=True)
def test_that_asks_for_one(kafka_broker):
    kafka_broker.fail("Heartbeat", "NOT_COORDINATOR")
    with RawMember(kafka_broker) as member:
        assert [member.heartbeat(), member.heartbeat()] == [16, 25]

@pytest.mark.groupstorm(emulated=True)
def test_that_needs_the_emulator(kafka_broker):
    raise AssertionError("never runs")

def test_that_needs_the_emulator_and_does_not_say_so(kafka_broker):
    kafka_broker.move_coordinator("readers")

@pytest.mark.groupstorm(brokers=3)
def test_that_needs_three(kafka_broker):
    raise AssertionError("never runs")
"""
)


@pytest.mark.slow
def test_on_somebodys_cluster_names_have_a_prefix_and_go_again(project: pytest.Pytester) -> None:
    """The cluster is emulated, and used as any cluster at an address."""
    project.makepyfile(ON_A_CLUSTER)
    with groupstorm.broker({"theirs": 1}, {"group.initial.rebalance.delay.ms": 0}) as cluster:
        place = cluster.bootstrap_servers
        result = run(project, "--kafka", place, "--kafka-allow-writes")
        result.assert_outcomes(passed=2, failed=2, skipped=2)
        result.stdout.fnmatch_lines(
            [
                f"kafka: {place}",
                f"E *InputError: {place} is a real broker: for faults, clients have to go through a proxy*",
                f"E *EmulatorOnly: move_coordinator: {place} is a real broker: *",
                f"SKIPPED *{place}: the test needs the emulator (emulated=True)",
                f"SKIPPED *{place}: brokers=3 is for the emulator",
            ]
        )
        assert set(topics_of(cluster)) == {"theirs"}
        groups = {event.group for _, event in cluster.events}
        assert {group.rpartition("-")[2] for group in groups} == {"readers"}
        assert all(cluster.group(group).state == "Dead" for group in groups)


def test_an_address_without_a_broker_is_one_line(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(kafka_broker):\n    pass\n")
    with groupstorm.broker() as broker:
        place = broker.bootstrap_servers
    result = run(project, f"--kafka={place}", "--kafka-allow-writes")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"kafka_broker: {place}: *"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_a_broker_that_cannot_be_had_is_a_skip_that_says_how(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile("def test_it(kafka_broker):\n    pass\n")
    monkeypatch.setenv("PATH", str(project.path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(project.path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.path))
    result = run(project, "--kafka", "jvm")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED *apt install*"])


# --- projects that merely have it installed --------------------------------------------------------

SEEN = """
import sys

def pytest_unconfigure(config):
    heavy = ("groupstorm", "kio", "aiokafka", "asyncio", "typer", "rich", "structlog", "yaml")
    print("LOADED", sorted(name for name in sys.modules if name.partition(".")[0] in heavy))
"""


def test_the_plugin_loads_and_prints_nothing_unless_a_test_asks(project: pytest.Pytester) -> None:
    project.makeconftest(SEEN)
    with_it = project.runpytest_subprocess(*PLUGIN, *ALONE, "--co", "-s", "-W", "error")
    without = project.runpytest_subprocess("-p", "no:groupstorm", *ALONE, "--co", "-s", "-W", "error")

    def said(result: pytest.RunResult) -> list[str]:
        return [
            line
            for line in result.outlines
            if not line.startswith(("LOADED", "plugins:")) and " in " not in line
        ]

    assert said(with_it) == said(without)
    assert with_it.errlines == without.errlines
    with_it.stdout.fnmatch_lines(["LOADED *'groupstorm', 'groupstorm.pytest_plugin'*"])
    (loaded,) = [line for line in with_it.outlines if line.startswith("LOADED")]
    (loaded_without,) = [line for line in without.outlines if line.startswith("LOADED")]
    ours = "'groupstorm', 'groupstorm.pytest_plugin', 'groupstorm.version'"
    assert loaded.replace(ours, "").replace(", ]", "]").replace("[, ", "[") == loaded_without


@pytest.mark.slow
def test_an_option_and_a_fixture_of_the_projects_own_come_first(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
import pytest

def pytest_addoption(parser):
    parser.addoption("--kafka", default="theirs", help="their own")

@pytest.fixture
def kafka_broker(request):
    return request.config.getoption("--kafka")
"""
    )
    project.makepyfile("def test_it(kafka_broker):\n    assert kafka_broker in ('theirs', 'given')\n")
    run(project).assert_outcomes(passed=1)
    run(project, "--kafka", "given").assert_outcomes(passed=1)
    run(project, "--kafka", "given", "--groupstorm-kafka", "emulator").assert_outcomes(passed=1)


def test_options_of_a_conftest_in_testpaths_are_known_beside_ours(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\ntestpaths = inner\n")
    inner = project.mkdir("inner")
    (inner / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--theirs')\n")
    (inner / "test_it.py").write_text(
        "def test_it(request):\n    assert request.config.getoption('--theirs') == 'x'\n"
    )
    run(project, "--kafka=emulator", "--theirs=x").assert_outcomes(passed=1)


@pytest.mark.slow
def test_help_explains_it(project: pytest.Pytester) -> None:
    options = run(project, "--help")
    options.stdout.fnmatch_lines(["groupstorm:", "*--kafka*", "*--kafka-allow-writes*"])
    run(project, "--markers").stdout.fnmatch_lines(["@pytest.mark.groupstorm(topics=*"])
    run(project, "--fixtures").stdout.fnmatch_lines(["kafka_broker*"])
