"""Settings by Kafka's names: those that are accepted, the refusals of the others, and their page."""

from __future__ import annotations

import pytest

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.config import REFUSED, SETTINGS, Advertised, BrokerConfig
from groupstorm.coordinator.config import OPTIONS as COORDINATOR_OPTIONS
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import java_address
from tools.documentation.broker import LIMITS, REMARKS, reference_page


def test_kafkas_defaults() -> None:
    assert BrokerConfig.from_mapping({}) == BrokerConfig(
        auto_create_topics_enable=True,
        num_partitions=1,
        message_max_bytes=1_048_588,
        log_retention_bytes=-1,
        fetch_max_bytes=55 * 1024 * 1024,
        socket_request_max_bytes=100 * 1024 * 1024,
    )


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("kafka:9092", Advertised("kafka", 9092)),
        ("PLAINTEXT://kafka.example:19092", Advertised("kafka.example", 19092, "PLAINTEXT")),
        ("sasl_ssl://[::1]:9092", Advertised("::1", 9092, "SASL_SSL")),
    ],
)
def test_advertised_listeners(text: str, endpoint: Advertised) -> None:
    assert BrokerConfig.from_mapping({"advertised.listeners": text}).advertised_listeners == endpoint


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("num.partitions", "0", "an integer from 1"),
        ("num.partitions", "three", "an integer from 1"),
        ("num.partitions", "\u0661", "an integer from 1"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("broker.rack", "", "none of them empty"),
        ("advertised.listeners", "kafka", "HOST:PORT"),
        ("advertised.listeners", "kafka:0", "HOST:PORT"),
        ("advertised.listeners", "a:1,b:2", "HOST:PORT"),
        ("advertised.listeners", "TLS://kafka:1", "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("sasl.enabled.mechanisms", "PLAIN,GSSAPI", "some of PLAIN, SCRAM-SHA-256"),
        ("sasl.enabled.mechanisms", "", "some of PLAIN, SCRAM-SHA-256"),
        ("connections.max.reauth.ms", "-1", "an integer from 0"),
        ("group.initial.rebalance.delay.ms", "soon", "group.initial.rebalance.delay.ms"),
        ("num.partition", "3", "did you mean num.partitions"),
        ("group.initial.rebalance.delay", "3", "did you mean group.initial.rebalance.delay.ms"),
        ("zookeeper.connect", "localhost", "accepted are advertised.listeners, allow.everyone"),
    ],
)
def test_wrong_settings_are_named_with_what_was_expected(name: str, value: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as refused:
        make_broker({name: value}, {})
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "printed"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "/10.0.0.1"),
    ],
)
def test_addresses_are_printed_as_java_prints_them(host: str, printed: str) -> None:
    assert java_address(host) == printed


@pytest.mark.parametrize("name", sorted(COORDINATOR_OPTIONS.keys() - set(SETTINGS)))
def test_a_setting_that_would_do_nothing_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(InputError) as refused:
        make_broker({name: "1"}, {})
    assert str(refused.value).startswith(f"option {name}: a setting of Kafka's that would do nothing here: ")


def test_every_beginning_of_a_refused_name_is_one_of_kafkas() -> None:
    for beginning in REFUSED:
        assert any(name.startswith(beginning) for name in COORDINATOR_OPTIONS), beginning
        assert not any(name.startswith(beginning) for name in SETTINGS), beginning


def test_the_reference_has_every_setting_limit_and_api() -> None:
    page = reference_page()
    for row in (
        "| `group.initial.rebalance.delay.ms` | `3000` |  |",
        "| `max.connections` | of each broker | `2147483647` | further connections are closed at once",
        "| `segment.bytes` | `1073741824` |",
        "| ShareFetch | 78 | 1-2 |",
    ):
        assert row in page
    assert all(f"| `{name}` | " in page for name in SETTINGS)


def test_every_setting_that_has_a_remark_can_be_set() -> None:
    assert set(SETTINGS) >= REMARKS.keys()


def test_every_setting_that_kafka_lacks_has_a_remark() -> None:
    assert {name for name in SETTINGS if name.startswith("groupstorm.")} <= REMARKS.keys()


def test_every_setting_that_limits_clients_is_in_the_table_of_limits() -> None:
    """A new one is found by its name."""
    limiting = {name for name in SETTINGS if name.startswith("groupstorm.max.") or name.endswith(".max.size")}
    assert limiting <= {limit for limit, _, _ in LIMITS}
