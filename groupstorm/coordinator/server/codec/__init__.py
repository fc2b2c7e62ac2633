"""Kafka's wire format: bytes <-> kio's dataclasses.

kio (generated from Kafka's own message schemas) says what a message consists of; reading and
writing are ours, because network bytes must not be believed: every length is checked against
what is there before anything is made from it. One compiled reader or writer per class, built
when it is first used.

`decoder(cls)` and `encoder(cls)` work on any of kio's classes, requests, responses, headers and
embedded structures alike; `CodecError` is the only error they raise.
"""

from __future__ import annotations

from groupstorm.coordinator.server.codec.decode import decoder
from groupstorm.coordinator.server.codec.encode import encoder
from groupstorm.coordinator.server.codec.schemas import ResponseTypes, request_type, response_types
from groupstorm.coordinator.server.codec.shape import CodecError

__all__ = ["CodecError", "ResponseTypes", "decoder", "encoder", "request_type", "response_types"]
