"""The page for Prometheus, read by its own client library, and the dashboard that asks for the metrics."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from groupstorm.problems import InputError
from groupstorm.watch.prometheus import METRICS, Collector, metrics_page
from groupstorm.watch.rolling import Rolling
from groupstorm.watch.watching import Picture
from tests.explain.explaining import storm
from tests.watch.rolling_rows import SECOND, generation_row, picture_of, rows_of, state_row

parser = pytest.importorskip("prometheus_client.parser", reason="needs prometheus_client: ./dev test")

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "docs" / "grafana" / "groupstorm.json"


def page_of(picture: Picture | None) -> str:
    collector = Collector()
    collector.picture = picture
    with metrics_page(collector, "127.0.0.1", 0) as address, urllib.request.urlopen(address) as answer:
        return str(answer.read().decode())


def samples_of(page: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(page)
        for sample in family.samples
    }


def labels(**values: str) -> frozenset[tuple[str, str]]:
    return frozenset(values.items())


@pytest.fixture(scope="module")
def storm_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Picture]:
    folder = tmp_path_factory.mktemp("storm")
    rows = rows_of(storm(folder, "rolling-deploy", "eager", {"members": 4, "partitions": 8}))
    rolling = Rolling(60 * SECOND)
    rolling.add(rows)
    picture = picture_of(rolling, rolling.last_us, active=frozenset({('moves>1 per "1h"', "storm")}))
    return page_of(picture), picture


def test_the_page_has_the_figures(storm_page: tuple[str, Picture]) -> None:
    page, picture = storm_page
    samples, sums = samples_of(page), picture.sums["storm"]
    group = labels(group="storm")
    assert samples["groupstorm_group_generations_total", group] == sums.generations > 0
    assert sums.unowned_us is not None
    unowned = samples["groupstorm_group_unowned_partition_seconds_total", group]
    assert unowned == sums.unowned_us / SECOND > 0
    left = samples["groupstorm_group_rebalances_total", labels(group="storm", cause="left")]
    assert left == sums.begun_by_cause["left"] > 0
    by = "groupstorm_group_rebalances_by_culprit_total"
    assert samples[by, labels(group="storm", member="member-3")] == sums.begun_by_member["member-3"] > 0
    assert samples["groupstorm_group_unowned_partitions", group] == 0
    assert samples["groupstorm_group_unowned_is_lower_bound", group] == 0
    assert samples["groupstorm_alert_active", labels(group="storm", alert='moves>1 per "1h"')] == 1
    assert samples["groupstorm_trace_last_row_age_seconds", frozenset()] == 1.5


def test_every_metric_follows_prometheus_rules(storm_page: tuple[str, Picture]) -> None:
    page, _ = storm_page
    families = {family.name: family for family in parser.text_string_to_metric_families(page)}
    assert families.keys() == {rule.name for rule in METRICS}
    for rule in METRICS:
        assert re.fullmatch("groupstorm(_[a-z]+)+", rule.name)
        assert families[rule.name].type == ("counter" if rule.is_counter else "gauge")
        assert families[rule.name].documentation == rule.help
        for sample in families[rule.name].samples:
            assert sample.labels.keys() == set(rule.labels)


def test_what_is_not_known_is_not_on_the_page() -> None:
    rolling = Rolling(60 * SECOND)
    rolling.add([state_row(0, "CompletingRebalance", "Stable", "")])
    names = {name for name, _ in samples_of(page_of(picture_of(rolling, SECOND)))}
    assert "groupstorm_group_generations_total" in names
    assert not names & {
        "groupstorm_group_unowned_partition_seconds_total",
        "groupstorm_group_unowned_partitions",
        "groupstorm_group_staleness_seconds",
        "groupstorm_group_lag_records",
    }


def test_the_page_is_empty_before_the_first_picture() -> None:
    assert page_of(None) == ""


def test_a_counter_does_not_go_back_though_a_gauge_does() -> None:
    collector = Collector()
    with metrics_page(collector, "127.0.0.1", 0) as address:
        seen = []
        for generations, missing in ((2, 5), (1, 3), (4, 1)):
            rolling = Rolling(60 * SECOND)
            rolling.add(generation_row(seq) for seq in range(missing, missing + generations))
            collector.picture = picture_of(rolling, 60 * SECOND)
            with urllib.request.urlopen(address) as answer:
                samples = samples_of(answer.read().decode())
            counter = samples["groupstorm_group_generations_total", labels(group="g")]
            seen.append((counter, samples["groupstorm_trace_missing_rows", frozenset()]))
    assert seen == [(2, 5), (2, 3), (4, 1)]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9400", "127.0.0.1.evil.example", "[evil", "@"]
)
def test_a_page_elsewhere_whose_name_leads_here_reads_nothing(host: str) -> None:
    with metrics_page(Collector(), "127.0.0.1", 0) as address:
        request = urllib.request.Request(address, headers={"Host": host})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        assert refused.value.code == 403
        local = urllib.request.Request(address, headers={"Host": "LOCALHOST:1"})
        with urllib.request.urlopen(local) as answer:
            assert answer.status == 200


def test_a_port_that_is_taken_is_refused() -> None:
    with metrics_page(Collector(), "127.0.0.1", 0) as address:
        port = int(address.rpartition(":")[2].removesuffix("/metrics"))
        taken = metrics_page(Collector(), "127.0.0.1", port)
        with pytest.raises(InputError, match=f"--prometheus {port}: cannot listen on 127.0.0.1"), taken:
            pass


def test_every_metric_that_the_dashboard_asks_for_exists() -> None:
    names = {f"{rule.name}_total" if rule.is_counter else rule.name for rule in METRICS}
    dashboard: Mapping[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    queries += [str(variable["query"]) for variable in dashboard["templating"]["list"]]
    asked = {name for query in queries for name in re.findall(r"groupstorm_\w+", query)}
    assert asked <= names
    assert len(asked) > 6
