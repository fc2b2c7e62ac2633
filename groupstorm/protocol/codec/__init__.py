"""Kafka's wire format: bytes <-> kio's dataclasses.

kio's dataclasses, generated from Kafka's own message schemas, describe the messages. The reader and the
writer are ours, because kio's trust lengths that come from the network: ours check every length before they
allocate anything. Each class has one compiled reader and one writer, made when they are first used.

`decoder(cls)` and `encoder(cls)` work on any of kio's classes, requests, responses, headers and
embedded structures alike; `CodecError` is the only error they raise.
"""

from __future__ import annotations

from groupstorm.protocol.codec.decode import decoder
from groupstorm.protocol.codec.encode import encoder
from groupstorm.protocol.codec.long_messages import decode_in_turns, encode_in_turns, release_in_turns
from groupstorm.protocol.codec.schemas import ResponseTypes, request_type, response_types
from groupstorm.protocol.codec.shape import CodecError

__all__ = [
    "CodecError",
    "ResponseTypes",
    "decode_in_turns",
    "decoder",
    "encode_in_turns",
    "encoder",
    "release_in_turns",
    "request_type",
    "response_types",
]
