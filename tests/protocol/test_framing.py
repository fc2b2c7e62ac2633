"""Frames are cut from a stream wherever it is split, up to socket.request.max.bytes (NetworkReceive)."""

from __future__ import annotations

import pytest

from groupstorm.protocol.headers import FrameBuffer, FrameError, frame


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
