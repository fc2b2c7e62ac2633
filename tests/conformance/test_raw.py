"""Every case of `tests.conformance.raw` on every broker: answers and times."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.conformance.backends import Backends
from tests.conformance.conftest import RecordProperty
from tests.conformance.raw import recorded
from tests.conformance.raw.cases import CASES
from tests.conformance.raw.playing import Played
from tests.conformance.raw.running import is_within, play
from tests.conformance.raw.steps import Case
from tests.soaking import one_in

EVERY_CASE = one_in(2, [pytest.param(case, id=case.name) for case in CASES])
TIMED = [case for case in EVERY_CASE if case.values[0].times]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, backends: Backends, kind: str, kafkas: Mapping[str, recorded.Answers]
) -> Mapping[str, Played]:
    """All cases that were asked for, played side by side."""
    wanted = {name for item in request.session.items if (name := _case_of(item))}
    return play(backends, kind, [case for case in CASES if case.name in wanted], kafkas)


def _result(played: Mapping[str, Played], case: Case) -> Played:
    result = played[case.name]
    if result.unavailable:
        pytest.skip(result.unavailable)
    return result


def _case_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    case = None if callspec is None else callspec.params.get("case")
    return case.name if isinstance(case, Case) else None


@pytest.fixture(scope="module")
def kafkas() -> Mapping[str, recorded.Answers]:
    return recorded.read()


@pytest.mark.parametrize("case", EVERY_CASE)
def test_answers(
    played: Mapping[str, Played],
    kafkas: Mapping[str, recorded.Answers],
    case: Case,
    record_property: RecordProperty,
) -> None:
    result = _result(played, case)
    assert not result.failure
    record_property("answers", str(len(result.answers)))
    kafka = f"Kafka {case.configuration.version}"
    assert result.answers == kafkas[case.name], f"{kafka} answers otherwise"


@pytest.fixture(scope="session")
def measured() -> dict[str, dict[str, float]]:
    """Milliseconds of this run: what -> kind of broker -> how long it took."""
    return {}


@pytest.mark.parametrize("case", TIMED)
def test_times(
    played: Mapping[str, Played],
    kind: str,
    measured: dict[str, dict[str, float]],
    case: Case,
    record_property: RecordProperty,
) -> None:
    """As Kafka's rule says, and as on every other broker of this run."""
    result = _result(played, case)
    assert result.times
    for time in result.times:
        record_property(time.what, f"{time.ms:.1f}")
        others = measured.setdefault(time.what, {})
        for where, ms in {"by the rule": float(time.expected_ms), **others}.items():
            assert is_within(time, ms), f"{time.what}: {time.ms:.0f} ms, {where} {ms:.0f} ms"
        others[kind] = time.ms


def test_each_case_has_a_name_of_its_own_and_is_recorded(kafkas: Mapping[str, recorded.Answers]) -> None:
    assert list(kafkas) == [case.name for case in CASES]
