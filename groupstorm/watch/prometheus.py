"""The figures for Prometheus, under its naming rules: counters since the trace began, gauges of now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from groupstorm.problems import InputError
from groupstorm.watch.watching import MICROSECONDS, Picture

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client.core import Metric

#: Of the loopback interface.
LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")
#: Label values, and the value.
Sample = tuple[tuple[str, ...], float]


class MetricRule(NamedTuple):
    """One metric. A counter's name gets Prometheus' ending `_total` on the page."""

    name: str
    help: str
    labels: tuple[str, ...]
    is_counter: bool
    samples: Callable[[Picture], Iterable[Sample]]


def _unowned_seconds(picture: Picture) -> Iterator[Sample]:
    for group, sums in picture.sums.items():
        if sums.unowned_us is not None:
            yield (group,), sums.unowned_us / MICROSECONDS


def _by_cause(picture: Picture) -> Iterator[Sample]:
    for group, sums in picture.sums.items():
        for cause, count in sums.begun_by_cause.items():
            yield (group, cause), count


def _by_culprit(picture: Picture) -> Iterator[Sample]:
    for group, sums in picture.sums.items():
        for member, count in sums.begun_by_member.items():
            yield (group, member), count


def _unowned_now(picture: Picture) -> Iterator[Sample]:
    for one in picture.groups:
        if one.now.unowned is not None:
            yield (one.group,), len(one.now.unowned)


def _unowned_for(picture: Picture) -> Iterator[Sample]:
    for one in picture.groups:
        if one.now.unowned is not None:
            since_us = min(one.now.unowned.values(), default=picture.end_us)
            yield (one.group,), (picture.end_us - since_us) / MICROSECONDS


def _staleness(picture: Picture) -> Iterator[Sample]:
    for one in picture.groups:
        if one.now.staleness_us is not None:
            yield (one.group,), one.now.staleness_us / MICROSECONDS


def _lag(picture: Picture) -> Iterator[Sample]:
    for one in picture.groups:
        if one.now.waiting is not None:
            yield (one.group,), one.now.waiting


_GROUP = ("group",)

METRICS: tuple[MetricRule, ...] = (
    MetricRule(
        "groupstorm_group_generations",
        "Generations that became Stable.",
        _GROUP,
        True,
        lambda picture: [((group,), sums.generations) for group, sums in picture.sums.items()],
    ),
    MetricRule(
        "groupstorm_group_unowned_partition_seconds",
        "Time without an owner, summed over partitions.",
        _GROUP,
        True,
        _unowned_seconds,
    ),
    MetricRule(
        "groupstorm_group_rebalances",
        "Rebalances by what began them.",
        ("group", "cause"),
        True,
        _by_cause,
    ),
    MetricRule(
        "groupstorm_group_rebalances_by_culprit",
        "Rebalances by the member that began them.",
        ("group", "member"),
        True,
        _by_culprit,
    ),
    MetricRule(
        "groupstorm_group_unowned_partitions",
        "Partitions without an owner now.",
        _GROUP,
        False,
        _unowned_now,
    ),
    MetricRule(
        "groupstorm_group_longest_open_gap_seconds",
        "How long the partition that has been without an owner longest has been so; 0 if each has an owner.",
        _GROUP,
        False,
        _unowned_for,
    ),
    MetricRule(
        "groupstorm_group_unowned_is_lower_bound",
        "1 if times without an owner are lower bounds, since only the coordinator says who owned what.",
        _GROUP,
        False,
        lambda picture: [((one.group,), float(one.at_least or bool(one.why))) for one in picture.groups],
    ),
    MetricRule(
        "groupstorm_group_staleness_seconds",
        "How long the oldest unprocessed record has waited.",
        _GROUP,
        False,
        _staleness,
    ),
    MetricRule("groupstorm_group_lag_records", "Records that wait to be processed.", _GROUP, False, _lag),
    MetricRule(
        "groupstorm_alert_active",
        "1 for an alert that is on.",
        ("group", "alert"),
        False,
        lambda picture: [((group, alert), 1) for alert, group in sorted(picture.active)],
    ),
    MetricRule(
        "groupstorm_trace_last_row_age_seconds",
        "How long ago the last rows of the trace came.",
        (),
        False,
        lambda picture: [((), picture.quiet_seconds)],
    ),
    MetricRule(
        "groupstorm_trace_missing_rows",
        "Rows that have not come although rows behind them have.",
        (),
        False,
        lambda picture: [((), picture.missing)],
    ),
    MetricRule(
        "groupstorm_trace_late_rows",
        "Rows that came too late to count.",
        (),
        True,
        lambda picture: [((), picture.too_late)],
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
        """What `prometheus_client` calls for each page."""
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
