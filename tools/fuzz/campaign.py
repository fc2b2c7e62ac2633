"""Trial after trial, on all cores: the corpus first, then scenarios that the seed draws."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from groupstorm.problems import InputError, writing
from groupstorm.storms.runs.run_folder import write_text
from groupstorm.storms.runs.worker_processes import map_in_processes
from groupstorm.yaml_documents import parse_yaml, read_text
from tools.fuzz.drawing import Document, draw_scenario
from tools.fuzz.shrinking import MAX_TRIALS, shrink
from tools.fuzz.trial import ENDS, EQUAL_TRACES, Result, try_scenario

#: Every so many drawn scenarios one is compared with the exact simulation.
EXACT_SHARE: Final = 4

#: The number of smaller scenarios that are tried if each that fails uses up its CPU time.
MAX_LONG_TRIALS: Final = 20

#: As many as nobody has the time for.
MANY: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Order:
    """A trial to do, in values that travel to another process.

    ``document`` None: the seed and the number draw the scenario. ``fixed``: settings of the command line.
    """

    seed: int
    number: int
    fixed: Mapping[str, Any]
    document: Document | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trial that is done: its scenario, and how it failed, if it did.

    ``smallest`` is the smallest scenario found that fails in the same way, ``found`` what it breaks.
    ``kafkas_own``: what Kafka itself does wrong in it.
    """

    order: Order
    scenario: Document
    found: Mapping[str, str]
    smallest: Document
    kind: str = ""
    kafkas_own: str | None = None


class Orders(Sequence[Order]):
    """The trials of a campaign: those of the corpus, then ``count`` drawn ones."""

    def __init__(
        self, seed: int, count: int, fixed: Mapping[str, Any], corpus: Sequence[Document] = ()
    ) -> None:
        self._seed = seed
        self._count = count
        self._fixed = fixed
        self._corpus = corpus

    def __len__(self) -> int:
        return len(self._corpus) + self._count

    def __getitem__(self, place: Any) -> Any:
        known = len(self._corpus)
        if place < known:
            return Order(self._seed, place, self._fixed, self._corpus[place])
        return Order(self._seed, place - known, self._fixed)


def campaign(orders: Orders, processes: int) -> Generator[Outcome, None, None]:
    """Do the trials and return them in their order; the iteration can be broken off at any time."""
    if processes <= 1:
        yield from map(carry_out, (orders[place] for place in range(len(orders))))
    else:
        yield from map_in_processes(carry_out, orders, processes)


def carry_out(order: Order, trial: Callable[..., Result] = try_scenario) -> Outcome:
    """One trial; if it fails, the scenario is made smaller. A drawn scenario that the fixed settings do not
    fit is passed over."""
    document = order.document
    exact = order.number % EXACT_SHARE == 0 or document is not None
    if document is None:
        document = draw_scenario(order.seed, order.number, order.fixed)
    try:
        result = trial(document, order.fixed, exact)
    except InputError:
        if order.document is not None:
            raise
        return Outcome(order, document, {}, document)
    if not result.broken:
        return Outcome(order, document, {}, document, kafkas_own=result.kafkas_own)
    kind = result.kind

    def fails(smaller: Document) -> bool:
        try:
            return kind in trial(smaller, order.fixed, kind == EQUAL_TRACES).broken
        except InputError:  # the smaller world does not fit together
            return False

    smallest = shrink(document, fails, MAX_LONG_TRIALS if kind == ENDS else MAX_TRIALS)
    last = trial(smallest, order.fixed, kind == EQUAL_TRACES)
    return Outcome(order, document, last.broken or result.broken, smallest, kind)


class Corpus:
    """The scenario files of one folder, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> Iterator[tuple[Path, Document]]:
        """Each file and its content, by name. Raises InputError for a file that is no scenario."""
        for path in sorted(self.folder.glob("*.yaml")):
            document = parse_yaml(read_text(path), str(path))
            if not isinstance(document, Mapping) or not isinstance(document.get("steps"), list):
                raise InputError(f"{path}: no scenario: name another folder with --out, or remove the file")
            yield path, {"name": path.stem, "seed": 0, "settings": {}, **document}

    def keep(self, document: Document, kind: str, found: Mapping[str, str]) -> Path:
        """Write a scenario that failed; ``kind``: the property that broke. Raises OutputError."""
        content = {
            "name": document["name"],
            "question": "; ".join(f"{name}: {sentence}" for name, sentence in found.items()),
            "seed": document["seed"],
            "settings": document["settings"],
            "steps": document["steps"],
        }
        path = self.folder / f"{kind}-{_digest(content)}.yaml"
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_text(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))
        return path


def _digest(content: Mapping[str, Any]) -> str:
    """Return the name by which equal scenarios have one file."""
    same = {name: content[name] for name in ("seed", "settings", "steps")}
    return hashlib.blake2b(yaml.safe_dump(same).encode(), digest_size=4).hexdigest()
