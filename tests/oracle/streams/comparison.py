"""A comparison of Kafka's task assignors and ours on equal cases, and what counts as equal.

Everything in an answer is compared, but for

* graphs beyond `SMALL_GRAPH`, where our fast solver may choose another optimum: there the cost and the
  number of tasks of each client are;
* `standby_warmup` where Kafka does not show which of several standbys a movement left (null in its answer);
* the end of a message that prints a whole ClientState.
"""

from __future__ import annotations

from groupstorm.assignors.streams import cases
from groupstorm.assignors.streams.cases import read_case
from groupstorm.assignors.streams.rackaware import SMALL_GRAPH, graph_size
from tests.oracle.assignors.differential import Answer
from tests.oracle.comparison import plain
from tests.oracle.running import Case, as_line

_STATE = ": [activeTasks"


def answer(case: Case) -> Answer:
    """Ours, as JSON values."""
    return plain(cases.answer(read_case(as_line(case).encode(), "case")))


def is_small(case: Case) -> bool:
    """Does ours make Kafka's own choice among the optima?"""
    size = graph_size(len(case["tasks"]), len(case["clients"]))
    return size <= SMALL_GRAPH or case.get("config", {}).get("strategy", "none") == "none"


def preserves_active(case: Case) -> bool:
    """Is the constructor's argument of KIP-924's assignor set?"""
    return bool(case.get("must_preserve_active") or case["config"].get("must_preserve_active"))


def form(case: Case) -> str:
    """Which of Kafka's algorithms a case runs."""
    config = case["config"]
    tags = ", tags" if config["rack_aware_tags"] and config["num_standby_replicas"] else ""
    preserve = ", preserved" if preserves_active(case) else ""
    return config["strategy"] + tags + preserve + ("" if is_small(case) else ", large")


def difference(case: Case, kafkas: Answer, ours: Answer) -> str:
    """Return what is wrong with our answer; "" for nothing."""
    if "error" in kafkas or "error" in ours:
        same = [_refusal(one) for one in (kafkas, ours)]
        return "" if same[0] == same[1] else "one is refused, or they are for different reasons"
    if not is_small(case):
        return _difference_of_large(kafkas, ours)
    for name, client in kafkas["clients"].items():
        if client.get("standby_warmup", ()) is None and name in ours["clients"]:
            ours["clients"][name]["standby_warmup"] = None
    wrong = [name for name in {**kafkas, **ours} if kafkas.get(name) != ours.get(name)]
    return f"{', '.join(wrong)}: not Kafka's" if wrong else ""


def _refusal(one: Answer) -> tuple[str | None, str | None]:
    message = one.get("message")
    return one.get("error"), None if message is None else message.partition(_STATE)[0]


def _difference_of_large(kafkas: Answer, ours: Answer) -> str:
    if kafkas.get("optimized_cost") != ours.get("optimized_cost"):
        return "the cost is not Kafka's"
    for name, client in kafkas["clients"].items():
        own = ours["clients"][name]
        if any(len(client[kind]) != len(own[kind]) for kind in ("active", "standby")):
            return f"client {name} has another number of tasks"
    return ""
