"""Trial after trial, on all cores: the corpus first, then scenarios that the seed draws."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.storms.runs.worker_processes import map_in_processes
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
