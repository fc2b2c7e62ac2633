"""More than one run: the variants of a scenario, or many seeds of one, in parallel processes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.figures import Figures, compare_answer
from groupstorm.storms.run import Run, remove_run, run, write_json
from groupstorm.storms.scenario import load

COMPARISON_FILE = "comparison.json"


@dataclass(frozen=True, slots=True)
class Order:
    """A run to be done, in terms that another process understands."""

    scenario: str
    variant: str | None
    seed: int | None
    overrides: Mapping[str, Any]
    folder: Path
    trace_format: str = "jsonl"
    exact: bool = False


def run_order(order: Order) -> Run:
    scenario = load(order.scenario).resolve(order.variant, order.seed, order.overrides)
    return run(scenario, order.folder, order.trace_format, order.exact)


def run_all(orders: Sequence[Order]) -> Iterator[Run]:
    """Do the runs, as many at once as there are cores; they come in the order in which they were given."""
    workers = min(
        len(orders), os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count() or 1
    )
    if workers <= 1:
        yield from map(run_order, orders)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_order, orders)


def check_variants(scenario: str, wanted: Sequence[str]) -> Sequence[str]:
    """The variants to compare: those that were named, or all. Raises InputError."""
    variants = load(scenario).variants
    for name in wanted:
        if name not in variants:
            raise InputError(f"variant: {name!r} is not one of {', '.join(variants)}")
    return wanted or tuple(variants)


def forget_other_variants(folder: Path, chosen: Sequence[str]) -> None:
    """Take away what an earlier comparison in ``folder`` left of variants that are not compared now."""
    older = folder / COMPARISON_FILE
    if not older.is_file():
        return
    try:
        known = json.loads(older.read_text("utf-8"))["variants"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{older}: not a comparison: name another folder with --out") from error
    older.unlink()
    for name in known:
        if name not in chosen and Path(name).name == name:
            remove_run(folder / name)


def comparison(preset: str, seed: int, variants: Mapping[str, Figures]) -> dict[str, Any]:
    """What `comparison.json` holds."""
    return {
        "preset": preset,
        "seed": seed,
        "variants": {name: figures.to_json() for name, figures in variants.items()},
        "answer": compare_answer(variants),
    }


def write_comparison(folder: Path, content: Mapping[str, Any]) -> None:
    write_json(folder / COMPARISON_FILE, content)
