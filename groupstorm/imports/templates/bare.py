"""Lines that name their group, or nobody, without a prefix in front of the message.

A line is found by the literal text in front of the first hole of its template.
"""

from __future__ import annotations

from typing import Final

from groupstorm.imports.prefixes import Writer
from groupstorm.imports.template import Template
from groupstorm.imports.templates import broker_classic, other_clients

_T = Template

#: The kind of a broker's own configuration, which it logs when it starts.
BROKER_CONFIG: Final = "broker-config"
#: The kind of the configuration of a worker of Kafka Connect.
WORKER_CONFIG: Final = "worker-config"
#: The kinds of exceptions that a Java application logs: they name no client.
COMMIT_EXCEPTION: Final = "commit-exception"
FENCED_EXCEPTION: Final = "fenced-exception"
REBALANCE_EXCEPTION: Final = "rebalance-exception"
EXCEPTIONS: Final = frozenset({COMMIT_EXCEPTION, FENCED_EXCEPTION, REBALANCE_EXCEPTION})
#: The kind of a broker's line about a partition of __consumer_offsets that takes no records.
APPEND_REFUSED: Final = "append-refused"

#: A broker logs these without its prefix: the object `GroupMetadata` writes them.
_OF_BROKERS: Final = tuple(
    template
    for template in broker_classic.TEMPLATES
    if template.text.startswith(
        ("Loaded member MemberMetadata", "Static member MemberMetadata", "given member.id")
    )
)

TEMPLATES: Final = (
    *_OF_BROKERS,
    *other_clients.TEMPLATES,
    _T(
        APPEND_REFUSED,
        "The size of the current ISR {isr} is insufficient to satisfy the min.isr requirement of {needed} "
        "for partition __consumer_offsets-{partition}",
        "Partition.scala",
        program=Writer.BROKER,
    ),
    _T(
        APPEND_REFUSED,
        "The size of the current ISR {isr} is insufficient to satisfy the min.isr requirement of {needed} "
        "for partition __consumer_offsets-{partition}, {rest}",
        "4.x Partition.scala",
        program=Writer.BROKER,
    ),
    *(
        _T(kind, f"org.apache.kafka.common.errors.{name}: {{said}}", "KafkaConsumer", program=Writer.JAVA)
        for kind, name in (
            (REBALANCE_EXCEPTION, "RebalanceInProgressException"),
            (FENCED_EXCEPTION, "FencedInstanceIdException"),
        )
    ),
    _T(
        COMMIT_EXCEPTION,
        "org.apache.kafka.clients.consumer.CommitFailedException: {said}",
        "KafkaConsumer",
        program=Writer.JAVA,
    ),
    _T("config", "ConsumerConfig values:{rest}", "org.apache.kafka.common.config.AbstractConfig", lines=True),
    _T(
        WORKER_CONFIG,
        "DistributedConfig values:{rest}",
        "org.apache.kafka.common.config.AbstractConfig",
        lines=True,
        program=Writer.JAVA,
    ),
    _T(
        BROKER_CONFIG,
        "KafkaConfig values:{rest}",
        "org.apache.kafka.common.config.AbstractConfig",
        lines=True,
        program=Writer.BROKER,
    ),
)
