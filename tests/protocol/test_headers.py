"""Request headers as a client writes them and as a broker reads them."""

from __future__ import annotations

import pytest
from kio.schema.request_header.v1.header import RequestHeader as HeaderV1
from kio.schema.request_header.v2.header import RequestHeader as HeaderV2
from kio.static.primitive import i16, i32

from groupstorm.protocol.codec import encoder
from groupstorm.protocol.headers import Header, read_header, request_header


@pytest.mark.parametrize("client_id", ["", "client-1", "größer"])
@pytest.mark.parametrize("flexible", [False, True])
def test_a_written_header_is_that_of_kafkas_schema(flexible: bool, client_id: str) -> None:
    written = request_header(11, 9, 70_000, client_id, flexible)
    schema = HeaderV2 if flexible else HeaderV1
    header = schema(
        request_api_key=i16(11), request_api_version=i16(9), correlation_id=i32(70_000), client_id=client_id
    )
    assert written == b"".join(encoder(schema)(header))
    assert read_header(written, flexible) == Header(11, 9, 70_000, client_id, len(written))
