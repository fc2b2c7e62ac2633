"""ACLs, SCRAM credentials, quotas and changed settings: their effect, and that a restart keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.quotas import Client, ClientQuotas, Windows
from groupstorm.broker.security.users import Credentials, Users, make_credential
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from tests.broker import wire
from tests.broker.asking import alter_configs, describe_configs, fetch, fetch_fields, produce, produce_fields
from tests.broker.asking_all import ACL, CREDENTIAL
from tests.broker.driver import Driver

BROKER = 4


AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def create_acl(driver: Driver) -> Error:
    return Error(driver.ask(wire.CREATE_ACLS, 3, creations=(ACL,)).results[0].error_code)


def set_quota(
    driver: Driver, key: str, value: float, kind: str = "user", name: str | None = "ANONYMOUS"
) -> Any:
    entity = {"entity_type": kind, "entity_name": name}
    entry = {"entity": (entity,), "ops": ({"key": key, "value": value},)}
    (answer,) = driver.ask(wire.ALTER_QUOTAS, 1, entries=(entry,), validate_only=False).entries
    assert answer.error_code == Error.NONE


def test_acls_credentials_quotas_and_settings_are_there_again() -> None:
    driver = Driver(AUTHORIZER, {"orders": 1})
    create_acl(driver)
    driver.ask(wire.ALTER_SCRAM, 0, deletions=(), upsertions=(CREDENTIAL,))
    set_quota(driver, "producer_byte_rate", 1000.0, name="alice")
    assert alter_configs(driver, 1, ("message.max.bytes", 0, "5000"), kind=BROKER, name="1") == Error.NONE
    assert alter_configs(driver, 1, ("log.retention.ms", 0, "7000"), kind=BROKER, name="") == Error.NONE
    before = driver.broker.state
    driver.restart()
    after = driver.broker.state
    assert len(after.acls) == 1
    assert list(after.acls) == list(before.acls)
    assert list(after.credentials.altered) == list(before.credentials.altered) != []
    assert dict(after.quotas) == dict(before.quotas) == {(("user", "alice"),): {"producer_byte_rate": 1000.0}}
    assert (after.config.message_max_bytes, after.config.log_retention_ms) == (5000, 7000)
    topic = after.topics.get("orders")
    assert topic is not None
    assert topic.settings.max_message_bytes == 5000


def test_acls_wait_for_an_authorizer() -> None:
    driver = Driver(AUTHORIZER, {"orders": 1})
    create_acl(driver)
    driver.restart(options={})
    without = driver.broker.state
    assert without.authorizer is None
    assert len(without.acls) == 1


def test_a_smaller_batch_is_the_most_as_soon_as_the_setting_says_so() -> None:
    driver = Driver(topics={"orders": 1})
    assert produce(driver, 9).error_code == Error.NONE
    assert alter_configs(driver, 1, ("message.max.bytes", 0, "10"), kind=BROKER, name="") == Error.NONE
    assert produce(driver, 9).error_code == Error.MESSAGE_TOO_LARGE
    alter_configs(driver, 1, ("max.message.bytes", 0, "5000"))
    assert produce(driver, 9).error_code == Error.NONE, "the topic's own value counts"


def test_brokers_of_one_process_share_their_settings() -> None:
    driver = Driver(brokers=2)
    change = ("message.max.bytes", 0, "5000")
    assert alter_configs(driver, 1, change, kind=BROKER, name="1") == Error.INVALID_REQUEST
    assert alter_configs(driver, 1, change, kind=BROKER, name="") == Error.NONE
    driver.node = 2
    (entry,) = describe_configs(
        driver, 4, kind=BROKER, name="2", configuration_keys=("message.max.bytes",)
    ).configs
    assert (entry.value, entry.config_source) == ("5000", 3)


@pytest.mark.parametrize("name", ["super.users", "allow.everyone.if.no.acl.found"])
def test_settings_of_an_authorizer_need_one(name: str) -> None:
    with pytest.raises(InputError, match=rf"option {name}: does nothing without authorizer.class.name"):
        make_broker({name: "User:a" if name == "super.users" else "true"}, {})


def test_another_authorizer_is_refused() -> None:
    with pytest.raises(InputError, match=r"option authorizer.class.name=x: expected org.apache.kafka"):
        make_broker({"authorizer.class.name": "x"}, {})


def test_everybody_may_use_a_resource_without_acls_if_the_setting_says_so() -> None:
    options = AUTHORIZER | {"super.users": "User:admin", "allow.everyone.if.no.acl.found": "true"}
    driver = Driver(options, {"orders": 1})
    assert produce(driver, 9).error_code == Error.NONE
    assert create_acl(driver) is Error.NONE
    assert produce(driver, 9).error_code == Error.TOPIC_AUTHORIZATION_FAILED


def throttle_ms(driver: Driver, **more: Any) -> int:
    """The time for which a produce is throttled; the connection is muted as long."""
    records = wire.batch([b"v" * 10_000])
    connection = driver.send(wire.PRODUCE, 9, **produce_fields(driver, records=records, **more))
    muted_ms = driver.muted_ms.get(connection, 0)
    answer = driver.answers.get(connection)
    if answer is not None:
        assert answer.throttle_time == wire.milliseconds(muted_ms)
    return muted_ms


def test_a_producer_above_its_quota_is_answered_at_once_and_muted() -> None:
    driver = Driver(topics={"orders": 1})
    assert throttle_ms(driver) == 0
    set_quota(driver, "producer_byte_rate", 1000.0)
    assert throttle_ms(driver) > 0
    driver.advance(60_000)
    assert throttle_ms(driver) == pytest.approx(150, abs=100), "10 KB fit into the windows of 1 KB a second"


def test_a_consumer_above_its_quota_gets_nothing_until_it_has_waited() -> None:
    driver = Driver(topics={"orders": 1})
    for _ in range(5):
        throttle_ms(driver)
    set_quota(driver, "consumer_byte_rate", 1500.0)
    records = fetch(driver, 12).records
    assert records
    assert len(records) < 15_000, "no more at once than the windows allow"
    connection = driver.send(wire.FETCH, 12, **fetch_fields(driver, 0, 0))
    answer = driver.answers[connection]
    assert answer.responses == ()
    assert answer.throttle_time == wire.milliseconds(driver.muted_ms[connection])
    driver.advance(driver.muted_ms[connection] + 11_000)
    assert fetch(driver, 12).records


def test_a_throttled_fetch_begins_no_session_and_keeps_one() -> None:
    driver = Driver(topics={"orders": 1})
    throttle_ms(driver)
    opened = driver.ask(wire.FETCH, 12, **fetch_fields(driver, 0, 0, session_epoch=0))
    assert opened.session_id != 0
    set_quota(driver, "consumer_byte_rate", 1.0)
    new = driver.ask(wire.FETCH, 12, **fetch_fields(driver, 0, 0, session_epoch=0))
    assert (new.session_id, new.responses, new.error_code) == (0, (), Error.NONE)
    going_on = {"session_id": opened.session_id, "session_epoch": 1, "forgotten_topics_data": ()}
    kept = driver.ask(wire.FETCH, 12, **fetch_fields(driver, 0, 0, **going_on))
    assert (kept.session_id, kept.responses, kept.error_code) == (opened.session_id, (), Error.NONE)


@pytest.mark.parametrize(
    ("entities", "expected"),
    [
        (["user+client", "user+any", "user"], 0),
        (["user+any", "user", "any user+client"], 0),
        (["user", "any user+client", "client"], 0),
        (["any user+client", "any user+any", "any user"], 0),
        (["any user+any", "any user", "client"], 0),
        (["any user", "client", "any client"], 0),
        (["client", "any client"], 0),
        (["other user", "any client"], 1),
    ],
)
def test_the_quota_of_the_most_exact_entity_counts(entities: list[str], expected: int) -> None:
    """DefaultQuotaCallback; ``entities``: those with a quota, of 1, 2, 3 ... bytes a second."""
    quotas = ClientQuotas(Windows())
    for value, name in enumerate(entities, start=1):
        quotas.change(ENTITIES[name], {"producer_byte_rate": float(value)})
    most = quotas.most_at_once("producer_byte_rate", Client("alice", "c", 1))
    assert most == (expected + 1) * 10


ENTITIES: dict[str, Any] = {
    "user+client": (("client-id", "c"), ("user", "alice")),
    "user+any": (("client-id", None), ("user", "alice")),
    "user": (("user", "alice"),),
    "other user": (("user", "bob"),),
    "any user+client": (("client-id", "c"), ("user", None)),
    "any user+any": (("client-id", None), ("user", None)),
    "any user": (("user", None),),
    "client": (("client-id", "c"),),
    "any client": (("client-id", None),),
}


def test_clients_of_one_user_share_its_quota_and_brokers_measure_for_themselves() -> None:
    quotas = ClientQuotas(Windows())
    quotas.change((("user", None),), {"producer_byte_rate": 100.0})
    assert quotas.record("producer_byte_rate", Client("alice", "a", 1), 1000, 0) == 0
    assert quotas.record("producer_byte_rate", Client("alice", "b", 1), 1000, 0) == 10_000
    assert quotas.record("producer_byte_rate", Client("bob", "a", 1), 1000, 0) == 0
    assert quotas.record("producer_byte_rate", Client("alice", "a", 2), 1000, 0) == 0
    quotas.change((("user", None),), {"producer_byte_rate": None})
    assert quotas.record("producer_byte_rate", Client("alice", "a", 1), 10**9, 0) == 0
    assert list(quotas) == []


def test_credentials_that_were_set_count_before_those_of_the_file() -> None:
    known = Credentials(Users({"alice": "secret"}))
    assert known.iterations_of("alice") == {1: 4096, 2: 4096}
    new = make_credential("sha256", "other", b"salt", 5000)
    known.alter("alice", 1, new)
    known.alter("alice", 2, None)
    known.alter("bob", 1, new)
    known.alter("carol", 1, None)
    assert known.credential("alice", "sha256") == new
    assert known.credential("alice", "sha512") is None
    assert known.credential("bob", "sha256") == new
    assert [name for name in known.known_names() if known.iterations_of(name)] == ["alice", "bob"]
    assert known.has("alice", "secret"), "PLAIN knows the file alone"
