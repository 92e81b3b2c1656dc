"""The dashboard and the alerts name what the server measures."""

from __future__ import annotations

import re
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import orjson
import promql_parser as promql
import pytest
import yaml

from lance_core.storage.wrappers.metered import KINDS, OUTCOMES
from namespace_server.attempts import Decision
from namespace_server.observability.metrics.measures import PREFIX
from namespace_server.observability.observation import BatchOutcome, FlipOutcome, ForwardingOutcome, GarbageReason
from scripts import generate_metrics

REPOSITORY = Path(__file__).parents[2]
ALERTS = REPOSITORY / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = REPOSITORY / "deploy" / "grafana" / "dashboard.json"
GUIDE = REPOSITORY / "docs" / "guide" / "monitoring.md"
OF_TARGETS = {"job", "instance"}
WORDS = {
    ("batch_seconds", "outcome"): get_args(BatchOutcome),
    ("flips", "outcome"): get_args(FlipOutcome),
    ("forwarded_seconds", "outcome"): get_args(ForwardingOutcome),
    ("storage_seconds", "outcome"): OUTCOMES,
    ("storage_seconds", "kind"): KINDS,
    ("collected_files", "reason"): get_args(GarbageReason),
    ("collections", "outcome"): ("complete", "partial", "failed"),
    ("background_running_seconds", "task"): ("recovery", "gc", "maintenance", "names"),
    ("request_seconds", "status"): ("2xx", "3xx", "4xx", "5xx", "none"),
    ("cache_lookups", "result"): ("hit", "miss"),
    ("refused_attempts", "decision"): get_args(Decision),
    ("audit_lines", "outcome"): ("written", "folded", "dropped"),
}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = orjson.loads(DASHBOARD.read_bytes())["panels"]
    return found


def queries() -> list[str]:
    shown = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    return [re.sub(r"\$__\w+", "5m", query) for query in shown] + [rule["expr"] for rule in rules()]


def selectors(query: str) -> list[promql.VectorSelector]:
    found: list[promql.VectorSelector] = []

    def visit(node: Any) -> bool:
        if isinstance(node, promql.VectorSelector):
            found.append(node)
        return True

    promql.walk(promql.parse(query), visit)
    return found


def labels_of(name: str) -> set[str]:
    """The labels of a time series of the server, without those that Prometheus adds."""
    samples = [sample for family in generate_metrics.example_metrics().registry.collect() for sample in family.samples]
    return {label for sample in samples if sample.name == name for label in sample.labels}


@pytest.mark.parametrize("query", queries())
def test_queries_name_what_is_measured(query: str) -> None:
    names = generate_metrics.names() | {"up"}
    found = selectors(query)
    assert found
    for selector in found:
        assert selector.name in names
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels_of(selector.name) | OF_TARGETS
            family = re.sub(r"_(total|count|sum|bucket)$", "", selector.name.removeprefix(PREFIX))
            if matcher.name not in OF_TARGETS:
                assert set(matcher.value.split("|")) <= set(WORDS[family, matcher.name])


def test_the_dashboard_shows_every_metric_of_the_server() -> None:
    shown = {selector.name for query in queries() for selector in selectors(query)}
    for family in generate_metrics.families():
        assert not shown.isdisjoint(sample.name for sample in family.samples), family.name


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in panels()]
    assert len({panel["id"] for panel in panels()}) == len(places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
        assert one["x"] + one["w"] <= 24


def test_alerts_say_what_to_do() -> None:
    guide = GUIDE.read_text("utf-8")
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert f"| `{rule['alert']}` |" in guide


@pytest.mark.long
def test_promtool_accepts_metrics_and_rules() -> None:
    built = subprocess.run([REPOSITORY / "scripts/promtool.sh"], stdout=subprocess.PIPE, text=True, check=True)
    promtool = built.stdout.strip()
    for command, given in (
        (["check", "rules", str(ALERTS)], b""),
        (["check", "metrics"], generate_metrics.example_metrics().exposition()),
    ):
        done = subprocess.run([promtool, *command], input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
