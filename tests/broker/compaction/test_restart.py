"""A compacted log is the same after a restart, and goes on as it would have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, produce
from tests.broker.compaction.reading import read
from tests.broker.driver import RESTARTS, Driver
from tests.broker.transactional import TransactionalProducer


def compacted() -> Driver:
    driver = Driver(topics={"orders": 3})
    configs = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.0"}
    changes = [(name, 0, value) for name, value in configs.items()]
    assert alter_configs(driver, 1, *changes, ("delete.retention.ms", 0, "20000")) is Error.NONE
    return driver


def state(driver: Driver) -> object:
    log = driver.broker.state.topics.partition("orders", 0)
    assert log is not None
    return log.state(), [*log.batches.all_data()], log.size_bytes, [*read(log)]


@pytest.mark.parametrize("how", RESTARTS)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.integers(0, 3)),
            st.tuples(st.just("transaction"), st.booleans()),
            st.tuples(st.just("wait"), st.integers(1, 40_000)),
            st.tuples(st.just("restart"), st.none()),
        ),
        max_size=12,
    )
)
def test_a_restart_changes_nothing(how: str, steps: list[tuple[str, int]]) -> None:
    driver = compacted()
    for number, (kind, what) in enumerate(steps):
        if kind == "wait":
            driver.advance(what)
        elif kind == "restart":
            before = state(driver)
            RESTARTS[how](driver)
            assert state(driver) == before
        elif kind == "write":
            value = None if what == 0 else b"%d" % number
            data = wire.batch([value, b"x"], keys=[b"%d" % what, b"x"], timestamp_ms=driver.now_ms)
            assert produce(driver, 9, records=data).error_code == Error.NONE
        else:
            producer = TransactionalProducer(driver, f"t{number}")
            producer.add()
            data = wire.batch(
                [b"%d" % number],
                keys=[b"t"],
                timestamp_ms=driver.now_ms,
                producer_id=producer.producer_id,
                epoch=producer.epoch,
                sequence=0,
                attributes=0x10,
            )
            answer = produce(driver, 9, records=data, transactional_id=producer.name)
            assert answer.error_code == Error.NONE
            assert producer.end(commit=bool(what)) is Error.NONE
    before = state(driver)
    RESTARTS[how](driver)
    assert state(driver) == before
