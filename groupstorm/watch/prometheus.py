"""The figures for Prometheus, under its naming rules: counters since the trace began, gauges of now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from groupstorm.problems import InputError
from groupstorm.watch.group import GroupPicture
from groupstorm.watch.rolling import GroupSums
from groupstorm.watch.watching import MICROSECONDS, Picture

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client.core import Metric

#: The names of the loopback interface.
LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")
#: Label values, and the value.
Sample = tuple[tuple[str, ...], float]


class MetricRule(NamedTuple):
    """One metric. A counter's name gets Prometheus' ending `_total` on the page."""

    name: str
    help: str
    samples: Callable[[Picture], Iterable[Sample]]
    labels: tuple[str, ...] = ("group",)
    is_counter: bool = False


def _now(value: Callable[[GroupPicture, Picture], float | None]) -> Callable[[Picture], Iterable[Sample]]:
    """A sample for each group whose value now is known."""

    def samples(picture: Picture) -> Iterator[Sample]:
        for one in picture.groups:
            found = value(one, picture)
            if found is not None:
                yield (one.group,), found

    return samples


def _so_far(values: Callable[[GroupSums], Mapping[str, float]]) -> Callable[[Picture], Iterable[Sample]]:
    """A sample for each value of a second label, of all that a group has had."""
    return lambda picture: [
        ((group, label), value)
        for group, sums in picture.sums.items()
        for label, value in values(sums).items()
    ]


def _unowned_seconds(picture: Picture) -> Iterator[Sample]:
    for group, sums in picture.sums.items():
        if sums.unowned_us is not None:
            yield (group,), sums.unowned_us / MICROSECONDS


def _unowned_for(one: GroupPicture, picture: Picture) -> float | None:
    if one.now.unowned is None:
        return None
    return (picture.end_us - min(one.now.unowned.values(), default=picture.end_us)) / MICROSECONDS


def _staleness(one: GroupPicture, _: Picture) -> float | None:
    return None if one.now.staleness_us is None else one.now.staleness_us / MICROSECONDS


METRICS: tuple[MetricRule, ...] = (
    MetricRule(
        "groupstorm_group_generations",
        "Generations that became Stable.",
        lambda picture: [((group,), sums.generations) for group, sums in picture.sums.items()],
        is_counter=True,
    ),
    MetricRule(
        "groupstorm_group_unowned_partition_seconds",
        "Time without an owner, summed over partitions.",
        _unowned_seconds,
        is_counter=True,
    ),
    MetricRule(
        "groupstorm_group_rebalances",
        "Rebalances by what began them.",
        _so_far(lambda sums: sums.begun_by_cause),
        ("group", "cause"),
        is_counter=True,
    ),
    MetricRule(
        "groupstorm_group_rebalances_by_culprit",
        "Rebalances by the member that began them.",
        _so_far(lambda sums: sums.begun_by_member),
        ("group", "member"),
        is_counter=True,
    ),
    MetricRule(
        "groupstorm_group_unowned_partitions",
        "Partitions without an owner now.",
        _now(lambda one, _: None if one.now.unowned is None else len(one.now.unowned)),
    ),
    MetricRule(
        "groupstorm_group_longest_open_gap_seconds",
        "How long the partition that has been without an owner longest has been so; 0 if each has an owner.",
        _now(_unowned_for),
    ),
    MetricRule(
        "groupstorm_group_unowned_is_lower_bound",
        "1 if times without an owner are lower bounds, since only the coordinator says who owned what.",
        _now(lambda one, _: float(one.at_least or bool(one.why))),
    ),
    MetricRule(
        "groupstorm_group_staleness_seconds",
        "How long the oldest unprocessed record has waited.",
        _now(_staleness),
    ),
    MetricRule(
        "groupstorm_group_lag_records",
        "Records that wait to be processed.",
        _now(lambda one, _: one.now.waiting),
    ),
    MetricRule(
        "groupstorm_alert_active",
        "1 for an alert that is on.",
        lambda picture: [((group, alert), 1) for alert, group in sorted(picture.active)],
        ("group", "alert"),
    ),
    MetricRule(
        "groupstorm_trace_last_row_age_seconds",
        "How long ago the last rows of the trace came.",
        lambda picture: [((), picture.quiet_seconds)],
        (),
    ),
    MetricRule(
        "groupstorm_trace_missing_rows",
        "Rows that have not come although rows behind them have.",
        lambda picture: [((), picture.missing)],
        (),
    ),
    MetricRule(
        "groupstorm_trace_late_rows",
        "Rows that came too late to count.",
        lambda picture: [((), picture.too_late)],
        (),
        is_counter=True,
    ),
)


class Collector:
    """The metrics of the last picture; none before the first.

    A counter never goes back, as Prometheus demands, even if a late file changes what was known.
    """

    def __init__(self) -> None:
        self.picture: Picture | None = None
        self._highest: dict[tuple[str, tuple[str, ...]], float] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of a page: `prometheus_client` calls this for each."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        picture = self.picture
        if picture is None:
            return
        for rule in METRICS:
            kind = CounterMetricFamily if rule.is_counter else GaugeMetricFamily
            family = kind(rule.name, rule.help, labels=rule.labels)
            for labels, value in rule.samples(picture):
                family.add_metric(labels, self._counted(rule, labels, value) if rule.is_counter else value)
            yield family

    def _counted(self, rule: MetricRule, labels: tuple[str, ...], value: float) -> float:
        highest = max(value, self._highest.get((rule.name, labels), 0))
        self._highest[rule.name, labels] = highest
        return highest


def _for_local_names(application: WSGIApplication) -> WSGIApplication:
    """The page for requests that name this machine as its own: a web page elsewhere can let its name lead
    here (DNS rebinding)."""

    def answer(environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with suppress(ValueError):
            if urlsplit(f"//{environment.get('HTTP_HOST', '')}").hostname in LOCAL_NAMES:
                return application(environment, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain")])
        return [f"Host: expected one of {', '.join(LOCAL_NAMES)}\n".encode()]

    return answer


@contextmanager
def metrics_page(collector: Collector, host: str, port: int) -> Iterator[str]:
    """Serve the page over HTTP for the block; its address. Raises InputError."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as missing:
        raise InputError(
            "--prometheus: prometheus_client is not installed: pip install 'groupstorm[watch]'"
        ) from missing
    registry = CollectorRegistry()
    registry.register(collector)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as problem:
        raise InputError(
            f"--prometheus {port}: cannot listen on {host}: {problem.strerror or problem}"
        ) from problem
    if host in LOCAL_NAMES:
        server.set_app(_for_local_names(server.get_app()))
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
