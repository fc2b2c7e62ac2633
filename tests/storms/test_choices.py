"""Which settings tell configurations apart, and how far each one is from the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from groupstorm.storms.runs.choices import beside_choices, cautions_of_change, defaults_among
from groupstorm.storms.scenario.files import ResolvedScenario, load
from groupstorm.verdicts.recommendation import Defaults
from tests.storms.storms_in_memory import START, scenario

STRATEGY = "partition.assignment.strategy"


def resolved(*steps: dict[str, Any], **settings: Any) -> ResolvedScenario:
    return scenario([START, *steps], **settings).resolve(None, 0, {})


def choices(configurations: Mapping[str, ResolvedScenario]) -> Defaults:
    """The defaults among configurations that differ in choices alone."""
    found = defaults_among(configurations)
    assert found is not None
    return found


def test_the_default_of_the_strategy_is_its_first_assignor() -> None:
    found = choices(
        {
            "eager": resolved(**{"partition.assignment.strategy": ["range"]}),
            "cooperative": resolved(**{"partition.assignment.strategy": ["cooperative-sticky"]}),
        }
    )
    assert found.has_them == "eager"
    assert found.words == "partition.assignment.strategy=range"
    assert found.distances["cooperative"].changes == 1
    assert found.sets == {"eager": "", "cooperative": "partition.assignment.strategy=cooperative-sticky"}
    half = resolved(**{"partition.assignment.strategy": ["cooperative-sticky", "range"]})
    found = choices(
        {"half": half, "done": resolved(**{"partition.assignment.strategy": ["cooperative-sticky"]})}
    )
    assert found.sets["half"] == "partition.assignment.strategy=cooperative-sticky,range", "which is eager"


def test_the_defaults_name_no_settings_of_protocols_that_members_of_the_default_one_do_not_have() -> None:
    consumer = {"group.protocol": "consumer", "group.remote.assignor": "range"}
    short = {"group.consumer.session.timeout.ms": 20_000, "session.timeout.ms": 20_000}
    found = choices({"classic": resolved(**short), "consumer": resolved(**consumer)})
    assert found.words == "group.protocol=classic, session.timeout.ms=45s"


def test_defaults_that_a_run_would_refuse_are_not_named() -> None:
    """With max_unavailable 0 no process could ever be replaced."""
    rolling = {"max_unavailable": 0}
    found = choices({"one": resolved(**rolling, max_surge=1), "half": resolved(**rolling, max_surge="50%")})
    assert (found.words, found.has_them) == ("", None)


def test_a_deployments_defaults_are_those_of_kubernetes() -> None:
    one = resolved(deployment="deployment", max_surge=0, max_unavailable=1)
    quarter = resolved(deployment="deployment", max_surge="25%", max_unavailable="25%")
    found = choices({"one": one, "quarter": quarter})
    assert (found.words, found.has_them) == ("max_surge=25%, max_unavailable=25%", "quarter")
    of_eight = {str(pods): resolved(deployment="deployment", members=8, max_surge=pods) for pods in (1, 2, 4)}
    found = choices(of_eight)
    assert (found.has_them, found.distances["1"]) == ("2", found.distances["4"]), "half as many, and twice"


def test_what_is_no_choice_is_named_where_choices_differ_too() -> None:
    """All that a person hears is why nothing is recommended."""
    plain, polls = resolved(), {"max.poll.records": 10}
    assert beside_choices([plain, resolved(**polls, process_ms=7)]) == "process_ms"
    assert beside_choices([plain, resolved(**polls)]) is None
    assert beside_choices([plain, resolved(members=9)]) is None, "docs/verdicts: then the table is the answer"


def test_who_commits_and_the_fields_of_a_pod_are_choices() -> None:
    pod = {"termination_grace_ms": 5_000, "pre_stop_ms": 2_000, "disruption_budget": 2}
    found = choices({"pod": resolved(**pod), "batch": resolved(commits="batch")})
    assert sorted(found.words.split(", ")) == [
        "commits=background", "disruption_budget=1", "pre_stop_ms=0s", "termination_grace_ms=null"
    ]  # fmt: skip
    assert found.sets["batch"] == "commits=batch"
    assert "pre_stop_ms=2s" in found.sets["pod"]


def test_clients_whose_defaults_differ_have_each_its_own() -> None:
    """A value that is set for all of them is a change, whichever it is: some client has another default."""
    mixed = {"client_profile": ["java", "librdkafka"]}
    found = choices(
        {
            "left": resolved(**mixed),
            "range": resolved(**mixed, **{"partition.assignment.strategy": ["range"]}),
            "roundrobin": resolved(**mixed, **{"partition.assignment.strategy": ["roundrobin"]}),
        }
    )
    assert found.words == "partition.assignment.strategy=each client's own"
    polls = {name: resolved(**mixed, **{"max.poll.records": most}) for name, most in (("a", 10), ("b", 20))}
    assert choices(polls).words == "max.poll.records=each client's own"
    assert found.has_them == "left"
    assert [one.changes for one in found.distances.values()] == [0, 1, 1]
    assert found.sets["range"] == "partition.assignment.strategy=range"


def test_each_client_is_held_against_its_own_default() -> None:
    mixed = {"client_profile": ["java", "aiokafka"]}
    found = choices(
        {
            "left": resolved(**mixed),
            "20": resolved(**mixed, **{"session.timeout.ms": 20_000}),
            "60": resolved(**mixed, **{"session.timeout.ms": 60_000}),
        }
    )
    assert [*found.cautions] == ["20"]


def test_an_assignor_that_no_kafka_client_brings_is_farther_than_one_of_kafkas() -> None:
    """It has to be built into every consumer: of two that are as good, Kafka's own is the one to take."""
    names = (
        "range",
        "cooperative-sticky",
        "org.apache.kafka.clients.consumer.StickyAssignor",
        "optimal-sticky",
    )
    found = choices({name: resolved(**{"partition.assignment.strategy": [name]}) for name in names})
    assert [found.distances[name].changes for name in names] == [0, 1, 1, 2]
    (own,) = [caution for caution in found.cautions.values() if "No Kafka client" in caution]
    assert own.endswith(" No Kafka client brings optimal-sticky: every consumer has to be built with it.")


TWO = "two deployments to get there, the first with both assignors, and only those after them cost this."


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, "sticky", f"sticky: {TWO}"),
        ("range", "sticky,range", None),  # which both know at any time
        # Java's default offers both
        (None, "cooperative-sticky", f"cooperative-sticky: if members offer range alone, {TWO}"),
        ("cooperative-sticky", "range", f"range: {TWO}"),
        ("range", "cooperative-sticky", f"cooperative-sticky: {TWO}"),
    ],
)
def test_an_assignor_that_consumers_do_not_offer_yet_takes_two_deployments(
    before: str | None, after: str, told: str | None
) -> None:
    """In one, the first pod that is replaced dies of INCONSISTENT_GROUP_PROTOCOL."""
    as_it_was = {"as-it-was": resolved(**{STRATEGY: [before]})} if before else {}
    defaults = {"range": resolved(**{STRATEGY: ["range"]})} if before is None else {}
    changed = resolved(**{STRATEGY: after.split(",")})
    found = choices({**as_it_was, **defaults, "after": changed})
    assert found.cautions == ({"after": told} if told else {})
    if before:
        assert cautions_of_change(as_it_was["as-it-was"], changed) == (told or "")


def test_what_no_figure_shows_of_more_heartbeats_static_members_and_kafkas_fallback() -> None:
    static = choices({"now": resolved(), "static": resolved(**{"group.instance.id": "ordinal"})}).cautions
    assert [*static] == ["static"]
    assert "one that is gone for good keeps its partitions until its session expires" in static["static"]
    found = choices({"now": resolved(), "often": resolved(**{"heartbeat.interval.ms": 1_000})})
    assert found.cautions == {
        "often": "With a heartbeat.interval.ms below the default each member sends as many more heartbeats."
    }
    tasks = {name: resolved(application="streams", **{"task.assignor": name}) for name in ("ha", "sticky")}
    prior = resolved(application="streams", **{"task.assignor": "fallback-prior"})
    assert choices({**tasks, "prior": prior}).contradictory == {"prior"}


def test_a_group_in_which_the_broker_assigns_needs_no_deployment_for_an_assignor() -> None:
    strategies = {name: resolved(**{STRATEGY: [name]}) for name in ("range", "sticky")}
    consumer = resolved(**{STRATEGY: ["sticky"], "group.protocol": "consumer"})
    assert "deployments" not in choices({**strategies, "consumer": consumer}).cautions["consumer"]


def test_numbers_are_nearer_or_farther_by_their_ratio() -> None:
    found = choices({str(s): resolved(**{"session.timeout.ms": s * 1000}) for s in (15, 30, 45, 67)})
    assert found.words == "session.timeout.ms=45s"
    assert sorted(found.distances, key=lambda name: found.distances[name]) == ["45", "67", "30", "15"]
    assert found.has_them == "45"


def test_the_defaults_are_those_of_the_client() -> None:
    """aiokafka's session.timeout.ms is 10 s."""
    clients = {"client_profile": ["aiokafka"]}
    found = choices({str(s): resolved(**clients, **{"session.timeout.ms": s * 1000}) for s in (10, 45)})
    assert found.has_them == "10"


def test_changes_to_a_run_are_held_against_the_settings_that_it_had() -> None:
    """The scenario repeats a run: nobody asked about the defaults of Kafka."""
    short, default = resolved(**{"session.timeout.ms": 30_000}), resolved(**{"session.timeout.ms": 45_000})
    found = choices({"as-it-was": short, "longer": default})
    assert (found.has_them, found.called) == ("as-it-was", "the settings in use")
    assert found.sets == {"as-it-was": "", "longer": "session.timeout.ms=45s"}
    assert "below the default" in found.cautions["as-it-was"]


def test_what_befalls_a_group_is_no_choice() -> None:
    short, long = resolved(failover_ms=1000), resolved(failover_ms=9000)
    assert defaults_among({"short": short, "long": long}) is None
    assert defaults_among({"four": resolved(members=4), "eight": resolved(members=8)}) is None
    assert defaults_among({"same": short, "too": short}) is None


def test_who_replaces_pods_has_no_default_but_how_many_at_once_has() -> None:
    one, many = resolved(max_unavailable=1), resolved(max_unavailable=3)
    found = choices({"many": many, "one": one})
    assert found.has_them == "one"
    pods = {"deployment": "statefulset", "group.instance.id": "podname", "max_unavailable": 2}
    found = choices({"static": resolved(**pods), "dynamic": resolved(deployment="deployment")})
    assert found.has_them == "dynamic"
    assert found.words == "group.instance.id=none"


def test_a_session_timeout_below_the_default_is_a_caution_with_the_longest_silence() -> None:
    """A pause may begin just before a heartbeat: the session runs from the one before, 3 s earlier."""
    pause = {"at_ms": 60_000, "do": "pause", "members": [0], "for_ms": 12_000}
    found = choices({str(s): resolved(pause, **{"session.timeout.ms": s * 1000}) for s in (14, 16, 45, 60)})
    assert list(found.cautions) == ["14", "16"]
    assert "removes healthy members here, too, which are silent for up to 15.0 s" in found.cautions["14"]
    assert "silent for 15.0 s at the longest, from heartbeat to heartbeat" in found.cautions["16"]
    quiet = choices({str(s): resolved(**{"session.timeout.ms": s * 1000}) for s in (15, 45)})
    assert "never silent" in quiet.cautions["15"]


def test_one_of_another_kind_of_group_is_none() -> None:
    name = "group.consumer.session.timeout.ms"
    found = choices({"now": resolved(), "classic": resolved(**{name: "20s"})})
    assert "below the default" not in found.cautions["classic"]


def test_share_consumers_are_no_setting() -> None:
    found = choices({one: resolved(**{"group.protocol": one}) for one in ("consumer", "share")})
    assert "written for KafkaShareConsumer, and needs Apache Kafka 4.2 (brokers)" in found.cautions["share"]


def test_a_poll_interval_below_the_default_is_a_caution() -> None:
    found = choices({str(s): resolved(**{"max.poll.interval.ms": s * 1000}) for s in (60, 300, 600)})
    assert list(found.cautions) == ["60"]
    assert "longer than 60.0 s from poll() to poll()" in found.cautions["60"]


@pytest.mark.parametrize(
    ("client", "releases"),
    [
        ("java", "kafka-clients 4.0"),
        ("librdkafka", "librdkafka 2.12 (confluent-kafka 2.12; in 2.4 to 2.11 for evaluation only)"),
    ],
)
def test_the_consumer_protocol_is_told_with_the_releases_that_it_takes(client: str, releases: str) -> None:
    protocols = ("classic", "consumer")
    found = choices({one: resolved(client_profile=[client], **{"group.protocol": one}) for one in protocols})
    needs = f"group.protocol=consumer needs Apache Kafka 4.0 (brokers) and {releases} or later."
    assert found.cautions == {"consumer": needs}


def test_members_that_process_less_than_arrives_contradict_themselves_unless_steps_add_more() -> None:
    """0.32 records a second of 20 s each take more than six members."""
    slow = {"members": 4, "partitions": 16, "record_rate": 0.02, "process_ms": 20_000}
    slow["max.poll.records"] = 1
    protocols = ("classic", "consumer")
    for added, expected in ((2, set(protocols)), (3, set())):
        more = {"at_ms": 60_000, "do": "add", "count": added}
        found = choices({one: resolved(more, **slow, **{"group.protocol": one}) for one in protocols})
        assert found.contradictory == expected


def test_a_step_that_comes_into_a_rolling_update_contradicts_itself() -> None:
    """The pods are replaced otherwise than by Kubernetes: nothing that such a run shows is recommended."""
    rolling = {"at_ms": 60_000, "do": "rolling-restart"}
    protocols = ("classic", "consumer")
    for at_ms, expected in ((61_000, set(protocols)), (59_000, set())):
        steps = [{"at_ms": at_ms, "do": "recreate"}, rolling]
        found = choices({one: resolved(*steps, **{"group.protocol": one}) for one in protocols})
        assert found.contradictory == expected


def test_variants_of_presets_that_are_choices() -> None:
    def of(preset: str) -> str | None:
        loaded = load(preset)
        found = defaults_among({name: loaded.resolve(name, 0, {}) for name in loaded.variants})
        return None if found is None else found.has_them

    assert of("rolling-deploy") == "eager"
    assert of("deploy-and-crash") == "eager"
    assert of("static-sizing") == "timeout-45s"
    assert of("aligned-restarts") == "one-by-one"
    for preset in ("coordinator-failover", "late-joiner-race", "poison-livelock", "autoscaler-flap"):
        assert of(preset) is None


def test_settings_of_the_broker_that_files_leave_out_have_defaults_too() -> None:
    """group.consumer.session.timeout.ms is 45 s, whichever configuration comes first."""
    name = "group.consumer.session.timeout.ms"
    default, shorter, longer = (
        resolved(**{"group.protocol": "consumer", **given}) for given in ({}, {name: 20_000}, {name: 60_000})
    )
    for configurations in ({"45": default, "20": shorter}, {"20": shorter, "45": default}):
        found = choices(configurations)
        assert found.words == f"{name}=45s"
        assert found.has_them == "45"
        assert list(found.cautions) == ["20"]
        assert found.cautions["20"] == (
            f"A {name} below the default removes members that are silent for longer. Here healthy processes "
            "are never silent: check that yours are not silent for longer (gc_pause_ms). "
            f"{name} is the broker's, for all its groups; with 20000 it does not start without "
            "group.consumer.min.session.timeout.ms=20000."
        )
    found = choices({"20": shorter, "60": longer})
    assert found.has_them is None
    assert found.cautions["60"] == f"{name} is the broker's, for all its groups."


def test_a_standby_needs_disk_and_is_the_brokers_in_a_streams_group() -> None:
    for protocol in ("classic", "streams"):
        given = {"application": "streams", "group.protocol": protocol}
        some = {f"{count}": resolved(**given, **{"num.standby.replicas": count}) for count in (0, 2)}
        cautions = choices(some).cautions
        disk = "num.standby.replicas=2: each standby of a task needs disk for one more copy of its state."
        assert [*cautions] == ["2"]
        assert cautions["2"].startswith(disk)
        assert ("group.streams.num.standby.replicas" in cautions["2"]) == (protocol == "streams")


def test_a_record_lock_below_the_default_is_a_caution_with_its_duration() -> None:
    locks = {
        str(s): resolved(**{"group.protocol": "share", "group.share.record.lock.duration.ms": s * 1000})
        for s in (15, 30)
    }
    found = choices(locks)
    assert list(found.cautions) == ["15"]
    assert "delivers records again that a consumer has worked on for 15.0 s" in found.cautions["15"]
