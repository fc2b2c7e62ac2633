"""Request headers as a client writes them and as a broker reads them, and the frames that are cut from a
stream wherever it is split, up to socket.request.max.bytes (NetworkReceive)."""

from __future__ import annotations

import pytest
from kio.schema.request_header.v1.header import RequestHeader as HeaderV1
from kio.schema.request_header.v2.header import RequestHeader as HeaderV2
from kio.static.primitive import i16, i32

from groupstorm.protocol.codec import encoder
from groupstorm.protocol.headers import FrameBuffer, FrameError, Header, frame, read_header, request_header


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


@pytest.mark.parametrize("split", range(1, 12))
def test_a_frame_is_complete_wherever_the_stream_is_split(split: int) -> None:
    stream = frame([b"ab", b"c"]) + frame([])
    buffer = FrameBuffer(3)
    frames = []
    for part in (stream[:split], stream[split:]):
        buffer.feed(part)
        while (one := buffer.next_frame()) is not None:
            frames.append(one)
    assert frames == [b"abc", b""]
    assert len(buffer) == 0


@pytest.mark.parametrize("length", [4, -1])
def test_a_length_beyond_the_limit_is_refused_before_its_bytes_come(length: int) -> None:
    buffer = FrameBuffer(3)
    buffer.feed(length.to_bytes(4, "big", signed=True))
    with pytest.raises(FrameError, match=f"a request of {length} bytes was announced, allowed are 3"):
        buffer.next_frame()
