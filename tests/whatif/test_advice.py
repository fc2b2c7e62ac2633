"""`advise` names known answers, and none if there is none; libraries know the lines to paste."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.storms.runs.sweep import Sweep
from groupstorm.storms.scenario.settings import Settings
from groupstorm.verdicts.requirements import parse
from groupstorm.whatif.advising import Advice, Search
from groupstorm.whatif.client_settings import LIBRARIES, lines_of
from groupstorm.whatif.knobs import changes_of
from tests.storms.storms_in_memory import scenario

START = {"at_ms": 0, "do": "start"}
SMALL = {
    "members": 3, "partitions": 6, "partition.assignment.strategy": ["cooperative-sticky"],
    "ready_ms": {"exactly": 1_000}, "stop_grace_ms": 0, "record_rate": 0,
}  # fmt: skip
CRASH = {"at_ms": 60_000, "do": "crash", "members": [1]}
ROLL = {"at_ms": 60_000, "do": "rolling-restart"}


def advised(
    folder: Path, *steps_and_goals: dict[str, object] | str, runs: int = 400, **settings: object
) -> Advice:
    steps = [one for one in steps_and_goals if isinstance(one, dict)]
    goals = [one for one in steps_and_goals if isinstance(one, str)]
    file = folder / "scenario.yaml"
    written = {
        "name": "x",
        "settings": {**SMALL, **settings},
        "steps": [START, *steps],
        "figures_from": 30_000,
    }
    file.write_text(yaml.safe_dump(written), "utf-8")
    sweep = Sweep(str(file), None, (), 0, 2, {})
    return Search(sweep, [parse(goal) for goal in goals], runs, lambda done, total: None).advise()


@pytest.mark.slow
def test_a_dead_member_is_noticed_as_soon_as_its_session_allows(tmp_path: Path) -> None:
    """Within 25 s: a session of 20 s is the nearest to what it was that can do it."""
    advice = advised(tmp_path, CRASH, "unowned_max_seconds<25")
    assert advice.chosen is not None
    assert advice.chosen.settings == {"session.timeout.ms": 20_000}
    assert advice.chosen.noticed_after_ms == 20_000
    assert any(one.settings == {"session.timeout.ms": 10_000} for one in advice.others)


@pytest.mark.slow
def test_the_shortest_session_that_brokers_allow_is_tried(tmp_path: Path) -> None:
    """group.min.session.timeout.ms is 6 s; aiokafka's default session is 10 s."""
    python: dict[str, Any] = {"client_profile": "aiokafka", "partition.assignment.strategy": ["roundrobin"]}
    advice = advised(tmp_path, CRASH, "unowned_max_seconds<8", **python)
    assert advice.chosen is not None
    assert advice.chosen.settings == {"session.timeout.ms": 6_000}


@pytest.mark.slow
def test_a_session_that_removes_silent_members_is_not_chosen_if_a_longer_one_does_as_well(
    tmp_path: Path,
) -> None:
    """A session of 30 s is better by what counts, and expires while a process is silent for 30 s."""
    steps = [
        {"at_ms": 60_000, "do": "disconnect", "members": "all", "for_ms": 20_000},
        {"at_ms": 180_000, "do": "pause", "members": [1], "for_ms": 30_000},
    ]
    advice = advised(tmp_path, *steps, partitions=30, **{"session.timeout.ms": 10_000})
    assert advice.chosen is not None
    assert advice.chosen.settings == {"session.timeout.ms": 45_000}
    [nearer] = [one for one in advice.tried if one.settings == {"session.timeout.ms": 30_000}]
    assert nearer.removes_healthy
    assert nearer not in advice.others
    before, after = advice.plain.spread(advice.figure), nearer.spread(advice.figure)
    assert before is not None
    assert after is not None
    assert after.most < before.least - 60


@pytest.mark.slow
def test_none_comes_nearest_if_seeds_alone_tell_them_apart(tmp_path: Path) -> None:
    python: dict[str, Any] = {"client_profile": "aiokafka", "partition.assignment.strategy": ["roundrobin"]}
    advice = advised(tmp_path, CRASH, "unowned_max_seconds<0.001", runs=6, **python)
    assert advice.reason.endswith("meets unowned_max_seconds<0.001")


@pytest.mark.slow
def test_a_goal_that_a_group_meets_which_cannot_keep_up_is_not_met(tmp_path: Path) -> None:
    """A record takes 20 ms, so that a member processes 50 a second, and 100 come into each partition: no
    setting of the group ends that, and none is tried."""
    advice = advised(tmp_path, CRASH, "unowned_max_seconds<55", record_rate=100, process_ms={"exactly": 20})
    assert (advice.chosen, advice.tried, advice.is_met) == (None, [], False)
    assert "ends that: each partition gets 100 records a second, and its owner processes" in advice.reason


@pytest.mark.slow
def test_restarts_that_take_longer_than_the_session_need_two_changes(tmp_path: Path) -> None:
    """A restart takes 70 s: nobody notices it if members are static and sessions outlast it. Alone, neither
    does it."""
    advice = advised(tmp_path, ROLL, "generations==0", start_ms={"exactly": 70_000})
    assert advice.chosen is not None
    assert {change.knob for change in advice.chosen.changes} == {"membership", "session.timeout.ms"}
    assert advice.chosen.settings["session.timeout.ms"] == 120_000
    assert [len(one.changes) for one in advice.steps()] == [1, 1, 2]


@pytest.mark.slow
def test_nothing_has_to_change_if_the_goal_is_met(tmp_path: Path) -> None:
    advice = advised(tmp_path, CRASH, "unowned_max_seconds<60")
    assert (advice.chosen, advice.tried) == (None, [])
    assert "meets the goal as it is" in advice.reason


@pytest.mark.slow
def test_a_budget_ends_the_search(tmp_path: Path) -> None:
    advice = advised(tmp_path, CRASH, "unowned_max_seconds<0.001", runs=8)
    assert advice.chosen is None
    assert (advice.cut_short, len(advice.tried)) == (True, 3)
    assert "no change of one or two settings meets" in advice.reason


def test_a_goal_for_a_figure_that_no_run_has_is_no_question_of_settings(tmp_path: Path) -> None:
    """No record arrives."""
    advice = advised(tmp_path, CRASH, "lag_peak<100", runs=4)
    assert advice.reason.endswith(" meets lag_peak<100: lag_peak has no value in any of these runs")


@pytest.mark.slow
def test_what_cannot_be_bought_has_no_winner(tmp_path: Path) -> None:
    """A group to which nothing happens: no setting makes a difference that counts."""
    quiet = {"at_ms": 60_000, "do": "busy", "members": [0], "for_ms": 1}
    advice = advised(tmp_path, quiet, runs=40)
    assert advice.chosen is None
    assert "no change of one or two settings makes a difference" in advice.reason


def test_a_protocol_is_tried_only_if_every_client_has_it() -> None:
    for clients, has_it in ((["java"], True), (["librdkafka"], True), (["java", "aiokafka"], False)):
        changes = changes_of(scenario([START], client_profile=clients).resolve(None, 0, {}))
        assert ("group.protocol=consumer" in [one.name for one in changes]) == has_it


@pytest.mark.parametrize(
    ("client", "now", "assignor", "price"),
    [
        ("java", "cooperative-sticky", "range", "two deployments to get there, the first with both"),
        ("java", "range", "sticky", "two deployments to get there"),
        ("java", "range,cooperative-sticky", "cooperative-sticky", ""),
        ("librdkafka", "cooperative-sticky", "range", "all consumers stop once for it"),
    ],
)
def test_members_without_an_assignor_in_common_are_refused(
    client: str, now: str, assignor: str, price: str
) -> None:
    offered = {"partition.assignment.strategy": now.split(",")}
    changes = changes_of(scenario([START], client_profile=client, **offered).resolve(None, 0, {}))
    (found,) = (one for one in changes if one.name == f"partition.assignment.strategy={assignor}")
    assert found.price.startswith(price)
    assert bool(found.price) == bool(price)


EVERY = {
    "partition.assignment.strategy": ["range"], "session.timeout.ms": 20_000, "heartbeat.interval.ms": 1_000,
    "max.poll.interval.ms": 60_000, "max.poll.records": 50, "group.instance.id": "ordinal",
}  # fmt: skip


@pytest.mark.parametrize(("library", "module"), [("aiokafka", "aiokafka"), ("kafka-python", "kafka")])
def test_python_libraries_know_the_lines_to_paste(library: str, module: str) -> None:
    installed = pytest.importorskip(module)
    known = (
        set(inspect.signature(installed.AIOKafkaConsumer.__init__).parameters)
        if module == "aiokafka"
        else set(installed.KafkaConsumer.DEFAULT_CONFIG)
    )
    lines = lines_of(EVERY).of_clients[library]
    assert {line.partition("=")[0] for line in lines} <= known
    assert len(lines) == len(EVERY)
    strategies = f"{module}.coordinator.assignors"
    own = next(one for one in LIBRARIES if one.name == library)
    for name, assignor in own.assignors.items():
        places = {"sticky": "sticky.sticky_assignor", "cooperative-sticky": "cooperative_sticky"}
        found = pytest.importorskip(f"{strategies}.{places.get(name, name)}")
        assert getattr(found, assignor).name == name


def test_librdkafka_knows_the_lines_to_paste() -> None:
    confluent = pytest.importorskip("confluent_kafka")
    lines = [line for line in lines_of(EVERY).of_clients["librdkafka"] if not line.startswith("#")]
    confluent.Consumer({"group.id": "g", **dict(line.split("=", 1) for line in lines)}).close()
    assert (
        "# no max.poll.records=50: librdkafka has no such setting" in lines_of(EVERY).of_clients["librdkafka"]
    )


def test_settings_with_which_a_consumer_of_the_new_protocol_does_not_start_are_removed() -> None:
    """CLASSIC_PROTOCOL_UNSUPPORTED_CONFIGS of ConsumerConfig; librdkafka refuses the same ones."""
    change = {"group.protocol": "consumer"}
    members = Settings(("", change | {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 3_000}))
    lines = lines_of(change, members).of_clients
    assert lines["java"] == lines["librdkafka"] == ("# remove session.timeout.ms", "group.protocol=consumer")
    rdkafka = Settings(("", change | {"client_profile": ["librdkafka"]}))  # with another default assignor
    assert lines_of(change, rdkafka).of_clients == {"librdkafka": ("group.protocol=consumer",)}


def test_what_a_library_does_not_have_is_said() -> None:
    lines = lines_of({"group.protocol": "consumer", "max.poll.interval.ms": 5, "max_surge": 1}).of_clients
    assert lines["aiokafka"][0] == "# no group.protocol=consumer: aiokafka has no such setting"
    assert lines["java"] == ("group.protocol=consumer", "max.poll.interval.ms=5")
    assert lines["franz-go"][0] == "kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()),"
    assert lines["franz-go"][1] == "# no max.poll.interval.ms=5: franz-go has no such setting"
    both = lines_of({"group.initial.rebalance.delay.ms": 0, "max_surge": 1})
    assert both.of_clients == {}
    assert both.of_broker == ("group.initial.rebalance.delay.ms=0",)
    assert both.of_deployment == ("maxSurge: 1",)


@pytest.mark.parametrize(
    ("group", "client"),
    [("classic", {}), ("consumer", {}), ("share", {}), ("streams", {"application": "streams"})],
)
def test_a_broker_starts_with_the_lines_of_every_change(group: str, client: dict[str, str]) -> None:
    settings = {"group.protocol": group, **client}
    changes = changes_of(scenario([START], **settings).resolve(None, 0, {}))
    own = Settings(("", settings))
    for one in changes:
        lines = [line.split("=") for line in lines_of(one.settings, own).of_broker]
        CoordinatorConfig.from_mapping(dict(lines))
        assert one.effort >= 3 or not lines
    if group != "classic":
        name = f"group.{group}.session.timeout.ms"
        least = f"group.{group}.min.session.timeout.ms=20000"
        assert lines_of({name: 20_000}, own).of_broker == (f"{name}=20000", least)
        most = f"group.{group}.max.session.timeout.ms=90000"
        assert lines_of({name: 90_000}, own).of_broker == (f"{name}=90000", most)
        assert lines_of({name: 60_000}, own).of_broker == (f"{name}=60000",)


def members(*profiles: str, **others: Any) -> Settings:
    return Settings(("", {"client_profile": [*profiles], **others}))


def test_lines_are_of_the_members_libraries_where_these_are_known() -> None:
    """`java` is also the profile of members of whom nothing is known."""
    settings = {"session.timeout.ms": 10_000}
    assert list(lines_of(settings, members("librdkafka")).of_clients) == ["librdkafka"]
    assert list(lines_of(settings, members("librdkafka", "java")).of_clients) == ["java", "librdkafka"]
    assert list(lines_of(settings, members("java")).of_clients) == [one.name for one in LIBRARIES]


def test_changes_of_kafka_streams_have_its_lines_alone() -> None:
    streams = {"application": "streams", "num.standby.replicas": 1}
    changes = changes_of(scenario([START], **streams).resolve(None, 0, {}))
    names = [one.name for one in changes]
    assert {"num.standby.replicas=2", "leave_on_close"} < {*names}
    assert not [name for name in names if name.startswith(("partition.assignment", "group.protocol"))]
    own = lines_of({"leave_on_close": True, "num.standby.replicas": 2}, members("java", **streams))
    assert own.of_clients == {
        "kafka-streams": ("internal.leave.group.on.close=true", "num.standby.replicas=2")
    }
    of_groups = changes_of(scenario([START], **streams, **{"group.protocol": "streams"}).resolve(None, 0, {}))
    of_broker = lines_of(
        {"num.standby.replicas": 3}, members("java", **streams, **{"group.protocol": "streams"})
    )
    assert of_broker.of_clients == {}
    assert of_broker.of_broker == (
        "group.streams.num.standby.replicas=3",
        "group.streams.max.standby.replicas=3",
    )
    sessions = [one.settings for one in of_groups if "session.timeout" in one.name]
    assert sessions[0] == {"group.streams.session.timeout.ms": 6_000}
    assert "leave_on_close" not in [one.name for one in of_groups]


def test_share_consumers_are_not_made_consumers_by_a_setting() -> None:
    """KafkaShareConsumer refuses group.protocol."""
    changes = changes_of(scenario([START], **{"group.protocol": "share"}).resolve(None, 0, {}))
    assert not any("group.protocol" in change.settings for change in changes)


def test_share_consumers_have_changes_and_lines_of_their_own() -> None:
    """Java alone has share consumers. Topics with rates by their names get records, too."""
    share = {"group.protocol": "share", "topic_partitions": {"mails": 4}, "record_rate": {"mails": 4}}
    changes = changes_of(scenario([START], **share).resolve(None, 0, {}))
    names = {change.name for change in changes}
    assert {
        "share.acknowledgement.mode=explicit",
        "max.poll.records=1",
        "share.acquire.mode=record_limit",
    } < names
    assert "group.share.record.lock.duration.ms=15s" in names
    assert not [name for name in names if name.startswith(("partition.assignment", "group.instance"))]
    changed = {"max.poll.records": 1, "share.acknowledgement.mode": "explicit"}
    own = lines_of(changed, members("java", **{"group.protocol": "share"}))
    assert own.of_clients == {"java": ("max.poll.records=1", "share.acknowledgement.mode=explicit")}


@pytest.mark.slow
def test_a_change_with_which_consumers_live_on_is_named_if_no_figure_is_better(tmp_path: Path) -> None:
    """A member of KIP-848 that dies cannot take its group.instance.id back, and ends; one of the classic
    protocol can."""
    static = {"group.protocol": "consumer", "group.instance.id": "ordinal", "partitions": 1}
    advice = advised(tmp_path, {**CRASH, "do": "crash-restart"}, runs=4, start_ms=9_000, **static)
    assert "but as it is, consumers ended with UNRELEASED_INSTANCE_ID" in advice.reason
    assert advice.reason.endswith(" and not with group.protocol=classic with cooperative-sticky")


def test_an_application_with_state_is_advised_by_the_time_in_which_its_tasks_are_down(tmp_path: Path) -> None:
    """A task that restores its state has an owner, and is down."""
    lost = {"at_ms": 600_000, "do": "lose-host", "members": [1]}
    file = tmp_path / "scenario.yaml"
    streams = {"application": "streams", "members": 3, "partitions": 6, "record_rate": 10}
    written = {"name": "x", "settings": streams, "steps": [START, lost], "figures_from": 300_000}
    file.write_text(yaml.safe_dump(written), "utf-8")
    advice = Search(Sweep(str(file), None, (), 0, 2, {}), (), 2, lambda done, total: None).advise()
    assert advice.figure == "task_downtime_seconds"
