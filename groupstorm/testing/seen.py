"""Reads of a request what faults look at."""

from __future__ import annotations

from groupstorm.broker.apis import APIS
from groupstorm.protocol.codec import decoder, request_type
from groupstorm.protocol.headers import peek, read_header
from groupstorm.testing.faults import GROUPS_OF, Faults, Seen


def read_seen(frame: bytes, faults: Faults) -> Seen | None:
    """None for an API or a version that the emulator does not serve. Raises CodecError."""
    api_key, version = peek(frame)
    api = APIS.get(api_key)
    if api is None or not api.min_version <= version <= api.max_version:
        return None
    message_type = request_type(api_key, version)
    header = read_header(frame, message_type.__flexible__)
    if not faults.ask_for_groups(api.name):
        return Seen(api.name, header.client_id)
    message, _ = decoder(message_type)(frame, header.body_at)
    return Seen(api.name, header.client_id, GROUPS_OF[api.name](message))
