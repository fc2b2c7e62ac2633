"""Real clients with and without rights, above their quotas, and as administrators of both."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.broker.security.listener import ListenerSecurity
from groupstorm.broker.security.users import Users
from tests.broker.authorization.playing import creation
from tests.broker.wire import ALTER_QUOTAS, CREATE_ACLS, RawClient
from tests.client_libraries.conftest import checked
from tests.client_libraries.members import GROUP, TOPIC
from tests.client_libraries.secured import CONSUMING, PRODUCING, Access, confluent_options, error_of
from tests.client_libraries.test_secured_tools import run_tool
from tests.conformance.programs.building import franz_go_secured
from tests.needs import needed
from tests.processes import run_process

ADMIN, USER, PASSWORD = "admin", "alice", "secret"
BOSS, ALICE = (Access("SASL_PLAINTEXT", "SCRAM-SHA-256", name, PASSWORD) for name in (ADMIN, USER))
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN}",
}
#: How each library calls the errors.
TOPIC_DENIED = {
    "aiokafka": "TopicAuthorizationFailedError",
    "confluent-kafka": "TOPIC_AUTHORIZATION_FAILED",
    "kafka-python": "TopicAuthorizationFailedError",
}
GROUP_DENIED = {
    "aiokafka": "GroupAuthorizationFailedError",
    "confluent-kafka": "GROUP_AUTHORIZATION_FAILED",
    "kafka-python": "GroupAuthorizationFailedError",
}


@pytest.fixture
def secured() -> Iterator[EmbeddedBroker]:
    security = ListenerSecurity(users=Users({ADMIN: PASSWORD, USER: PASSWORD}))
    with EmbeddedBroker(OPTIONS, {TOPIC: 1}, security=security) as broker:
        yield broker


def allow(broker: EmbeddedBroker, *rights: str) -> None:
    """Give the user these rights, as `creation` reads them."""
    with RawClient((broker.host, broker.port)) as client:
        assert client.ask(17, 1, mechanism="PLAIN").error_code == 0
        token = f"\0{ADMIN}\0{PASSWORD}".encode()
        assert client.ask(36, 2, auth_bytes=token).error_code == 0
        acls = tuple(creation(right) for right in rights)
        results = client.ask(CREATE_ACLS, 3, creations=acls).results
        assert [one.error_code for one in results] == [0] * len(rights)


def test_a_producer_learns_that_it_may_not_write(library: str, secured: EmbeddedBroker) -> None:
    assert error_of(library, PRODUCING[library], secured.address, ALICE) == TOPIC_DENIED[library]
    allow(secured, f"WRITE TOPIC {TOPIC}")
    assert error_of(library, PRODUCING[library], secured.address, ALICE) == ""


def test_a_consumer_learns_which_right_it_lacks(library: str, secured: EmbeddedBroker) -> None:
    allow(secured, f"WRITE TOPIC {TOPIC}", f"DESCRIBE TOPIC {TOPIC}")
    assert error_of(library, PRODUCING[library], secured.address, ALICE) == ""
    assert error_of(library, CONSUMING[library], secured.address, ALICE) == GROUP_DENIED[library]
    allow(secured, f"READ GROUP {GROUP[:3]}*")
    assert error_of(library, CONSUMING[library], secured.address, ALICE) == TOPIC_DENIED[library]
    allow(secured, f"READ TOPIC {TOPIC}")
    assert error_of(library, CONSUMING[library], secured.address, ALICE) == ""


def test_librdkafka_administers_acls_and_credentials(secured: EmbeddedBroker) -> None:
    checked("confluent-kafka")
    from confluent_kafka import KafkaException, admin

    boss = admin.AdminClient(confluent_options(secured.address, BOSS))
    literal = admin.ResourcePatternType.LITERAL
    allowing = (admin.AclOperation.READ, admin.AclPermissionType.ALLOW)
    rule = admin.AclBinding(admin.ResourceType.TOPIC, TOPIC, literal, f"User:{USER}", "*", *allowing)
    boss.create_acls([rule])[rule].result()
    everything = admin.AclBindingFilter(
        admin.ResourceType.ANY,
        None,
        admin.ResourcePatternType.ANY,
        None,
        None,
        admin.AclOperation.ANY,
        admin.AclPermissionType.ANY,
    )
    assert boss.describe_acls(everything).result() == [rule]
    alice = admin.AdminClient(confluent_options(secured.address, ALICE))
    with pytest.raises(KafkaException, match="Request CreateAcls needs ALTER permission"):
        alice.create_acls([rule])[rule].result()
    assert alice.describe_acls(everything).result() == [], "librdkafka does not look at the error"
    assert boss.delete_acls([everything])[everything].result() == [rule]
    info = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_256, 8192)
    change = admin.UserScramCredentialUpsertion("bob", info, PASSWORD.encode())
    boss.alter_user_scram_credentials([change])["bob"].result()
    bob = admin.AdminClient(confluent_options(secured.address, BOSS._replace(username="bob")))
    assert TOPIC not in bob.list_topics(timeout=10).topics
    assert TOPIC in boss.list_topics(timeout=10).topics


@pytest.mark.slow
def test_librdkafka_tells_its_application_that_it_is_throttled() -> None:
    checked("confluent-kafka")
    from confluent_kafka import Producer

    with EmbeddedBroker({}, {TOPIC: 1}) as broker:
        set_quota(broker, 100_000)
        throttled: list[float] = []
        settings = {"bootstrap.servers": broker.address, "linger.ms": 0, "batch.size": 60_000}
        producer = Producer(settings | {"throttle_cb": lambda event: throttled.append(event.throttle_time)})
        began_s = time.monotonic()
        for _ in range(24):
            producer.produce(TOPIC, bytes(50_000))
        assert producer.flush(30) == 0
        assert throttled
        assert time.monotonic() - began_s > 0.2
        assert broker.closed == []


def franz_go(what: str, **options: str) -> list[list[str]]:
    """The words of each line that franz-go's program says, without repetitions of a line."""
    with needed():
        program = franz_go_secured()
    words = [f"{name.replace('_', '.')}={value}" for name, value in options.items()]
    done = run_process(
        [str(program), what, *words], capture_output=True, text=True, deadline_s=60, check=True
    )
    return [line.split("\t") for line in dict.fromkeys(done.stdout.splitlines())]


@pytest.mark.slow
def test_franz_go_learns_which_right_it_lacks(secured: EmbeddedBroker) -> None:
    who = {"bootstrap_servers": secured.address, "user": USER, "password": PASSWORD}
    named = who | {"topic": TOPIC, "group": GROUP}
    assert franz_go("produce", **named) == [["error", "TOPIC_AUTHORIZATION_FAILED"]]
    allow(secured, f"WRITE TOPIC {TOPIC}")
    assert franz_go("produce", **named) == [["done"]]
    assert franz_go("consume", **named) == [["error", "GROUP_AUTHORIZATION_FAILED"]]
    allow(secured, f"READ GROUP {GROUP}")
    assert franz_go("consume", **named) == [["error", "TOPIC_AUTHORIZATION_FAILED"]]
    allow(secured, f"READ TOPIC {TOPIC}")
    assert franz_go("consume", **named) == [["done"]]


@pytest.mark.slow
def test_franz_go_waits_as_long_as_it_is_throttled() -> None:
    with EmbeddedBroker({}, {TOPIC: 1}) as broker:
        set_quota(broker, 20_000)
        began_s = time.monotonic()
        said = franz_go("produce", bootstrap_servers=broker.address, topic=TOPIC, records="6", bytes="50000")
        assert said[-1] == ["done"]
        throttled = [line for line in said if line[0] == "throttled"]
        assert {line[2] for line in throttled} == {"true"}, "from the response on"
        assert time.monotonic() - began_s > sum(int(line[1]) for line in throttled[:-1]) / 1000


def set_quota(broker: EmbeddedBroker, bytes_per_second: float) -> None:
    entity = {"entity_type": "user", "entity_name": "ANONYMOUS"}
    entry = {"entity": (entity,), "ops": ({"key": "producer_byte_rate", "value": bytes_per_second},)}
    with RawClient((broker.host, broker.port)) as client:
        (answer,) = client.ask(ALTER_QUOTAS, 1, entries=(entry,), validate_only=False).entries
        assert answer.error_code == 0


@pytest.mark.slow
def test_kafka_acls_and_kafka_configs(secured: EmbeddedBroker, tmp_path: Path) -> None:
    def said(tool: str, *arguments: str) -> str:
        done = run_tool(secured.address, tmp_path, BOSS._replace(mechanism="PLAIN"), tool, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    acls, configs = "org.apache.kafka.tools.AclCommand", "kafka.admin.ConfigCommand"
    added = ("--add", "--allow-principal", f"User:{USER}", "--producer", "--topic", TOPIC)
    said(acls, *added)
    listed = said(acls, "--list")
    for operation in ("WRITE", "CREATE", "DESCRIBE"):
        assert f"(principal=User:{USER}, host=*, operation={operation}, permissionType=ALLOW)" in listed
    user = ("--entity-type", "users", "--entity-name", "bob")
    scram = "SCRAM-SHA-256=[iterations=8192,password=secret]"
    said(configs, "--alter", *user, "--add-config", scram)
    said(configs, "--alter", *user, "--add-config", "producer_byte_rate=1000")
    described = said(configs, "--describe", *user)
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "producer_byte_rate=1000.0" in described
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    said(configs, "--alter", *broker, "--add-config", "message.max.bytes=5000")
    assert "message.max.bytes=5000" in said(configs, "--describe", *broker)
    assert secured.closed == []
