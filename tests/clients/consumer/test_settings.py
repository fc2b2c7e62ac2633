"""Options as users write them, and the errors of invalid ones."""

from __future__ import annotations

import re
import ssl
import sys
from typing import Any

import pytest

from groupstorm.clients.consumer.settings import ConsumerSettings, read_settings
from groupstorm.clients.wire.logs import FetchSizes, OffsetReset
from groupstorm.clients.wire.security import PLAINTEXT
from groupstorm.problems import InputError
from groupstorm.protocol.endpoints import Endpoint
from tests.processes import run_process

pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")


def read(**options: Any) -> ConsumerSettings:
    return read_settings(("t",), "localhost:9092", "g", options)  # type: ignore[arg-type]  # bad ones too


def test_the_defaults_are_kafkas() -> None:
    settings = read()
    config, fetch = settings.config, settings.fetch
    assert (config.session_timeout_ms, config.heartbeat_interval_ms) == (45_000, 3_000)
    assert (config.max_poll_interval_ms, settings.max_poll_records) == (300_000, 500)
    assert (config.enable_auto_commit, config.auto_commit_interval_ms) == (True, 5_000)
    assert fetch.sizes == FetchSizes(1, 52_428_800, 500, 1_048_576)
    assert fetch.reset is OffsetReset.LATEST
    assert (fetch.decoding.check_crcs, fetch.decoding.read_committed) == (True, False)
    assert config.partition_assignment_strategy == ("cooperative-sticky",)
    assert settings.security == PLAINTEXT


def test_servers_are_one_text_or_a_list() -> None:
    assert read_settings(("t",), ["a:1", "b:2"], "g", {}).bootstrap == (Endpoint("a", 1), Endpoint("b", 2))


def test_security() -> None:
    context = ssl.create_default_context()
    settings = read(
        security_protocol="SASL_SSL",
        ssl_context=context,
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="eve",
        sasl_plain_password="secret",
    )
    assert settings.security == (context, "SCRAM-SHA-512", "eve", "secret")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"session_timeout": 1}, "session_timeout: no such option"),
        ({"session_timeout_ms": 0}, "session_timeout_ms: 0, expected a whole number, 1 or more"),
        ({"max_poll_records": True}, "max_poll_records: True"),
        ({"fetch_min_bytes": 1.5}, "fetch_min_bytes: 1.5"),
        ({"enable_auto_commit": "false"}, "enable_auto_commit: 'false', expected True or False"),
        ({"auto_offset_reset": "first"},
         "auto_offset_reset: 'first', expected one of latest, earliest, none"),
        ({"isolation_level": "all"}, "isolation_level"),
        ({"partition_assignment_strategy": ["best"]}, "best"),
        ({"partition_assignment_strategy": []}, "partition.assignment.strategy"),
        ({"group_instance_id": 7}, "group_instance_id: 7, expected a text"),
        ({"security_protocol": "TLS"}, "security_protocol"),
        ({"security_protocol": "SSL"}, "ssl_context"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}, "sasl_mechanism: 'GSSAPI'"),
        ({"heartbeat_interval_ms": 45_000}, "heartbeat.interval.ms"),
        ({"group_protocol": "streams"}, "group_protocol: 'streams', expected one of classic, consumer"),
        ({"group_protocol": "consumer", "session_timeout_ms": 9_000},
         "session.timeout.ms: 9000 cannot be set with group.protocol=consumer"),
        ({"group_remote_assignor": "range"}, "group.remote.assignor: range cannot be set with"),
        ({"group_protocol": "consumer", "subscription_pattern": "t.*"},
         "subscription_pattern: 't.*', and topics: t, expected one of them"),
    ],
)  # fmt: skip
def test_an_invalid_option_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        read(**options)


def test_a_group_and_brokers_are_needed() -> None:
    with pytest.raises(InputError, match="group_id"):
        read_settings(("t",), "a:1", "", {})
    with pytest.raises(InputError, match="expected HOST:PORT"):
        read_settings(("t",), "a", "g", {})


@pytest.mark.slow
def test_the_import_needs_no_aiokafka_and_a_consumer_without_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['aiokafka'] = None\n"
        "from groupstorm.clients import CooperativeConsumer\n"
        "try: CooperativeConsumer('t', bootstrap_servers='a:1', group_id='g')\n"
        "except ValueError as problem: print(problem)\n"
    )
    answer = run_process([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install groupstorm[kafka]" in answer.stdout


def test_the_consumer_protocol() -> None:
    config = read_settings(
        (), "a:1", "g", {"group_protocol": "consumer", "subscription_pattern": "t.*"}
    ).config
    assert (config.group_protocol, config.topics, config.subscription_pattern) == ("consumer", (), "t.*")
    assert (
        read(group_protocol="consumer", group_remote_assignor="range").config.group_remote_assignor == "range"
    )
