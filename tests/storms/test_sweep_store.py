"""The finished runs of a sweep in its folder: what is kept, what is done again, what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from groupstorm import __version__
from groupstorm.problems import InputError, OutputError
from groupstorm.storms.runs.sweep import Sweep, parse_axis
from groupstorm.storms.runs.sweep_runs import (
    Order,
    Plan,
    Ran,
    Result,
    RunsFile,
    SweepStore,
    definition_text,
    missing_orders,
    run_here,
    run_one,
)
from groupstorm.storms.scenario.files import load

SCENARIO = """
name: small
settings: {members: 2, partitions: 4}
steps: [{at_ms: 0, do: start}]
"""


def sweep(scenario: str = "cold-start", over: str = "members=2,3,4", seeds: int = 2) -> Sweep:
    return Sweep(scenario, None, (parse_axis(over, load(scenario)),), 5, seeds, {"partitions": 4})


def plan(wanted: Sweep) -> Plan:
    return Plan(wanted, wanted.points())


def keep(store: SweepStore, orders: Sequence[Order], name: str = "local") -> dict[tuple[int, int], Result]:
    """Do these runs and keep them."""
    results = {order.key: run_one(order) for order in orders}
    with RunsFile(store.runs, name) as file:
        for key, result in results.items():
            file.add(key, result)
    return results


@pytest.fixture
def store(tmp_path: Path) -> SweepStore:
    """Return the store of a sweep that has begun."""
    with SweepStore(tmp_path / "x").begun(definition_text(plan(sweep()), __version__)):
        pass
    return SweepStore(tmp_path / "x")


def test_runs_that_are_kept_are_the_runs(store: SweepStore) -> None:
    wanted = plan(sweep())
    results = keep(store, wanted.orders[:3]) | keep(store, wanted.orders[3:], "task-00001")
    assert store.results() == results
    assert store.count() == 6
    outcomes = wanted.outcomes(store.results())
    assert [outcome.point.labels for outcome in outcomes] == [("2",), ("3",), ("4",)]
    assert [[*outcome.figures] for outcome in outcomes] == [[5, 6]] * 3
    kept = [results[1, seed] for seed in (5, 6)]
    ran = [one for one in kept if isinstance(one, Ran)]
    assert [*outcomes[1].figures.values()] == [one.figures for one in ran]
    assert outcomes[1].start_us == sum(one.start_us for one in ran) > 0


def test_two_processes_never_write_to_one_file(store: SweepStore) -> None:
    with RunsFile(store.runs, "local") as one, RunsFile(store.runs, "local") as other:
        for file, seed in ((one, 5), (other, 6), (one, 7)):
            file.add((0, seed), "no")
    assert sorted(file.name for file in store.runs.glob("*.jsonl")) == ["local-1.jsonl", "local-2.jsonl"]
    assert [*store.results().items()] == [((0, 5), "no"), ((0, 7), "no"), ((0, 6), "no")]


def test_a_line_that_was_broken_off_is_a_run_that_is_not_done(store: SweepStore) -> None:
    wanted = plan(sweep())
    keep(store, wanted.orders[:2])
    (file,) = store.runs.glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-1])
    assert [*store.results()] == [wanted.orders[0].key]
    assert store.count() == 1


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"point": 0, "seed": 5}', '{"point": 0, "seed": 5, "figures": {"a": 1}}']
)
def test_a_line_that_is_no_run_is_named(store: SweepStore, line: str) -> None:
    file = store.runs / "local-1.jsonl"
    file.write_text('{"point": 0, "seed": 5, "refused": "no"}\n' + line + "\n")
    with pytest.raises(InputError, match=r"local-1.jsonl:2: not a finished run: remove the file"):
        store.results()


@pytest.mark.parametrize(
    ("another", "what"),
    [
        (sweep("cold-start", "members=2,3,4", 3), "--seeds"),
        (sweep("cold-start", "members=2,3,5"), "--over"),
        (sweep("cold-start", "session.timeout.ms=20s,30s"), "--over"),
        (replace(sweep(), first_seed=6), "--seed"),
        (replace(sweep(), overrides={"partitions": 5}), "--set"),
        (replace(sweep(), variant="delay-3s"), "--variant"),
        (sweep("rolling-deploy"), "scenario"),
    ],
)
def test_a_folder_of_another_sweep_is_refused(store: SweepStore, another: Sweep, what: str) -> None:
    with (
        pytest.raises(InputError, match=f"x: holds a sweep with another {what}: name another folder"),
        store.begun(definition_text(plan(another), __version__)),
    ):
        raise AssertionError("it has begun")
    assert store.sweep() == sweep()


def test_the_order_of_over_is_the_order_of_the_points(store: SweepStore) -> None:
    one, two = (
        parse_axis(text, load("cold-start")) for text in ("members=2,3", "session.timeout.ms=20s,30s")
    )
    there, wanted = (replace(sweep(), axes=axes) for axes in ((one, two), (two, one)))
    folder = SweepStore(store.folder / "y")
    with folder.begun(definition_text(plan(there), __version__)):
        pass
    with pytest.raises(InputError, match="holds a sweep with another --over"):
        folder.check(definition_text(plan(wanted), __version__))


def test_a_scenario_that_was_changed_meanwhile_is_another_sweep(tmp_path: Path) -> None:
    file, store = tmp_path / "s.yaml", SweepStore(tmp_path / "x")
    file.write_text(SCENARIO)
    wanted = sweep(str(file))
    order = plan(wanted).orders[0]
    with store.begun(definition_text(plan(wanted), __version__)):
        keep(store, [order])
    store.check(definition_text(plan(wanted), __version__))
    file.write_text(SCENARIO.replace("partitions: 4", "partitions: 4, session.timeout.ms: 20s"))
    with pytest.raises(InputError, match="another content of the scenario or of a file that it names"):
        store.check(definition_text(plan(wanted), __version__))
    with pytest.raises(InputError, match=r"s\.yaml: it, a file that it names or groupstorm is not"):
        run_one(order)


def test_an_assignor_of_ones_own_that_was_changed_meanwhile_makes_another_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "plug_in_of_a_sweep.py"
    module.write_text("def none(topics, subscriptions):\n    return {}\n")
    own = {"partition.assignment.strategy": "plug_in_of_a_sweep:none"}
    wanted = replace(sweep(), overrides={**sweep().overrides, **own})
    before = plan(wanted)
    assert plan(wanted).checksum == before.checksum
    module.write_text("def none(topics, subscriptions):\n    return {}  # changed\n")
    assert plan(wanted).checksum != before.checksum


def test_a_sweep_is_read_back_with_its_points_and_their_labels(tmp_path: Path) -> None:
    wanted = sweep(over="start_ms=20s,1500,{p50: 1s, p95: 2s}")
    store = SweepStore(tmp_path / "x")
    with store.begun(definition_text(plan(wanted), __version__)):
        pass
    assert store.sweep() == wanted
    assert definition_text(plan(store.sweep()), __version__) == definition_text(plan(wanted), __version__)


def test_a_folder_without_a_sweep_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no sweep: expected a folder"):
        SweepStore(tmp_path / "nowhere").sweep()
    with pytest.raises(InputError, match="not seen here: every worker has to see it under this path"):
        SweepStore(tmp_path / "nowhere").check_is_seen()
    (tmp_path / "runs").mkdir()
    for text in ("", "[]", "{}", '{"over": 3}', '{"over": [["members", [1]]]}'):
        (tmp_path / "runs" / "definition.json").write_text(text)
        with pytest.raises(InputError, match=r"definition\.json: not the definition of a sweep"):
            SweepStore(tmp_path).sweep()


def test_what_fails_before_the_first_run_leaves_nothing(tmp_path: Path) -> None:
    store, definition = SweepStore(tmp_path / "a" / "x"), definition_text(plan(sweep()), __version__)
    with pytest.raises(KeyboardInterrupt), store.begun(definition):
        raise KeyboardInterrupt
    assert not [*tmp_path.iterdir()]
    with store.begun(definition):
        keep(store, plan(sweep()).orders[:1])
    assert store.count() == 1
    with pytest.raises(KeyboardInterrupt), store.begun(definition):
        raise KeyboardInterrupt
    assert store.count() == 1
    assert store.sweep() == sweep()


def test_only_runs_that_are_missing_are_done(store: SweepStore) -> None:
    wanted = plan(sweep())
    keep(store, [wanted.orders[0], wanted.orders[3]])
    assert [order.key for order in missing_orders(wanted, store)] == [(0, 6), (1, 5), (2, 5), (2, 6)]
    keep(store, missing_orders(wanted, store))
    assert missing_orders(wanted, store) == []
    assert store.count() == 6
    store.forget_runs()
    assert missing_orders(wanted, store) == wanted.orders
    assert store.count() == 0


@pytest.mark.slow
def test_runs_are_done_in_processes_and_kept_as_they_come(store: SweepStore) -> None:
    wanted, shown = plan(sweep()), list[int]()
    run_here(wanted.orders[1:], store, shown.append)
    assert shown == [1, 2, 3, 4, 5]
    assert store.results() == {order.key: run_one(order) for order in wanted.orders[1:]}


def test_a_run_that_cannot_be_written_is_said(store: SweepStore) -> None:
    with (
        pytest.raises(OutputError, match="gone: cannot be written"),
        RunsFile(store.folder / "gone", "local") as file,
    ):
        file.add((0, 5), "no")
