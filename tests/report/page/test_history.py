"""Drawings of a run: owners, phases and curves agree with the figures of the same trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.report.lanes.members import Activity
from groupstorm.report.page.content import CHANGES_MAX, RunView, natural, read_views, run_content
from groupstorm.report.page.history import ABSENT, ACTIVITIES, GONE, UNOWNED
from groupstorm.report.page.steps import BUCKETS_MAX, Samples
from groupstorm.report.page.svg import runs_svg
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load

IMPORTS = Path(__file__).parents[2] / "imports"
OFFSETS = [IMPORTS / "offsets/data/__consumer_offsets-0"]
RECORDING = sorted((IMPORTS / "logs/real/kafka-4.3.1-java").glob("*.log.gz"))
SMALL = {"members": 6, "partitions": 18, "start_ms": "7s", "ready_ms": "500ms"}


@pytest.fixture(scope="module", params=["eager", "cooperative", "static", "consumer"])
def view(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunView:
    folder = tmp_path_factory.mktemp("run") / request.param
    run(load("rolling-deploy").resolve(request.param, 3, SMALL), folder)
    return read_views({request.param: folder})[0]


def drawn_without_owner_s(view: RunView) -> float:
    steps = [
        step
        for partition in view.partitions
        for step in view.history.owners.of(partition, *view.span_us, ABSENT)
    ]
    return sum(step.to_us - step.from_us for step in steps if step.value == UNOWNED) / 1e6


def test_gaps_of_the_owners_are_the_un_owned_time(view: RunView) -> None:
    assert drawn_without_owner_s(view) == pytest.approx(view.figures.unowned_partition_seconds, abs=1e-5)


@pytest.mark.parametrize("sources", [OFFSETS, RECORDING], ids=["offsets", "logs"])
def test_partitions_of_an_imported_group_need_no_owner_while_it_has_no_members(
    tmp_path: Path, sources: list[Path]
) -> None:
    """In both the last members go long before the end; in the records of offsets the groups are deleted."""
    import_logs(find_logs([str(one) for one in sources]), tmp_path / "out", Options())
    views = read_views({"out": tmp_path / "out"})
    assert len(views) > 1
    for view in views:
        expected_s = view.figures.unowned_partition_seconds
        assert drawn_without_owner_s(view) == pytest.approx(expected_s, abs=1e-5)
        unowned_us = sum(bucket.unowned_us for bucket in view.history.samples.buckets)
        assert unowned_us / 1e6 == pytest.approx(expected_s, abs=1e-5)
        last = view.history.samples.buckets[-1]
        assert (last.unowned, last.unowned_us) == (0, 0)


def test_the_curves_reach_the_figures(view: RunView) -> None:
    buckets = view.history.samples.buckets
    unowned_us = sum(bucket.unowned_us for bucket in buckets)
    assert unowned_us / 1e6 == pytest.approx(view.figures.unowned_partition_seconds, abs=1e-5)
    assert max(bucket.lag or 0 for bucket in buckets) == pytest.approx(view.figures.lag_peak, abs=1)
    oldest = max(bucket.age_us or 0 for bucket in buckets) / 1e6
    assert oldest == pytest.approx(view.figures.staleness_max_seconds, abs=0.01)


def test_the_longest_gap_comes_first(view: RunView) -> None:
    gaps = view.history.gaps
    assert gaps[0].gap_us / 1e6 == pytest.approx(view.figures.unowned_max_seconds)
    assert [gap.gap_us for gap in gaps] == sorted((gap.gap_us for gap in gaps), reverse=True)


def test_every_member_is_away_once_and_comes_back(view: RunView) -> None:
    for member in view.history.activities.numbers:
        steps = view.history.activities.of(member, *view.span_us, GONE)
        found = [ACTIVITIES[step.value] for step in steps]
        assert found.count(Activity.GONE) == (2 if found[0] is Activity.GONE else 1)
        assert found[-1] in (Activity.OWNS, Activity.REJOINS, Activity.IDLE)


def test_reading_beside_them_changes_no_figure(view: RunView, tmp_path: Path) -> None:
    scenario = load("rolling-deploy").resolve(view.name, 3, SMALL)
    assert run(scenario, tmp_path / "again").figures.to_json() == view.figures.to_json()


def test_buckets_grow_with_the_trace() -> None:
    samples = Samples(1_000_000)
    samples.advance(1_500_000, 2, None)
    samples.advance(4_000_000_000, 0, lambda at_us, _: (at_us / 1e6, at_us))
    assert len(samples.buckets) <= BUCKETS_MAX + 1
    assert sum(bucket.unowned_us for bucket in samples.buckets) == 1_000_000
    assert samples.buckets[0].unowned == 2
    last_us = samples.buckets[-1].age_us
    assert last_us is not None
    assert last_us > 4_000_000_000 - 2 * samples.bucket_us


def test_names_are_sorted_by_their_numbers() -> None:
    assert sorted(["t-10", "t-9", "a-1", "t"], key=natural) == ["a-1", "t", "t-9", "t-10"]


def test_a_share_group_has_no_lane_of_partitions_without_an_owner(tmp_path: Path) -> None:
    run(load("share-deploy").resolve("killed", 0, {"members": 3, "partitions": 2}), tmp_path / "x")
    (view,) = read_views({"x": tmp_path / "x"})
    assert not run_content(view, CHANGES_MAX)["ownershipKnown"]
    assert "no owners (a share group)" in runs_svg([view], "?")
