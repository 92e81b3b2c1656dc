"""helm, hadolint and the schemas of Kubernetes take the chart and the image."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.support.servers import free_port
from tests.server.servers import REPOSITORY, ServerProcess, send

pytestmark = pytest.mark.long

CHART = REPOSITORY / "deploy/helm/lance-namespace"
SMALL: dict[str, Any] = {"root": "s3://bucket/catalog", "auth": {"keys": {"a-key-in-plain-text": "ann"}}}
VALUES: dict[str, dict[str, Any]] = {
    "one server on a bucket": SMALL,
    "three servers with everything": {
        **SMALL,
        "replicas": 3,
        "auth": {"existingSecret": "keys"},
        "tls": {"existingSecret": "certificate", "ca": True},
        "peers": {"existingSecret": "servers"},
        "settings": {"allowed_hosts": ["*.example.org"], "storage": {"region": "eu-west-1"}, "gc_interval": 3600},
        "env": [{"name": "AWS_REGION", "value": "eu-west-1"}],
        "envFrom": [{"secretRef": {"name": "store"}}],
        "ingress": {"enabled": True, "hosts": ["catalog.example.org"], "className": "nginx"},
        "metrics": {kind: {"enabled": True} for kind in ("serviceMonitor", "prometheusRule", "dashboard")},
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/r"}},
        "podAnnotations": {"a": "b"},
        "podLabels": {"team": "data"},
        "networkPolicy": {"catalogFrom": [{"namespaceSelector": {"matchLabels": {"team": "data"}}}]},
    },
    "backups": {
        **SMALL,
        "settings": {"storage": {"region": "eu-west-1"}, "manifest_store": "postgresql+psycopg://db/manifests"},
        "backup": {"enabled": True, "destination": "s3://elsewhere/backups", "arguments": ["--heads"]},
        "metrics": {"prometheusRule": {"enabled": True, "runbookUrl": "https://docs.example.org/monitoring/"}},
        "envFrom": [{"secretRef": {"name": "store"}}],
    },
    "tokens alone": {
        "root": "s3://bucket/catalog",
        "settings": {"token_issuers": [{"issuer": "https://login.example.org", "audience": "lance", "clock_skew": 30}]},
    },
    "a directory": {
        "root": "/var/lib/lance-namespace/catalog",
        "persistence": {"enabled": True, "storageClass": "fast"},
        "auth": {"insecure": True},
    },
    "a shared directory": {
        "root": "/var/lib/lance-namespace/catalog",
        "replicas": 2,
        "persistence": {"enabled": True, "accessModes": ["ReadWriteMany"]},
        "settings": {"tls_client_ca": "/etc/lance-namespace/tls/ca.crt"},
        "tls": {"existingSecret": "certificate"},
        "auth": {"insecure": True},
    },
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no root": ({"auth": {"insecure": True}}, "root: expected the root of the catalog"),
    "no keys": (
        {"root": "s3://b/c"},
        "auth: expected existingSecret, keys, settings.token_issuers or insecure, found none",
    ),
    "keys and none": ({**SMALL, "auth": {**SMALL["auth"], "insecure": True}}, "found both"),
    "tokens and none": (
        {
            **SMALL,
            "auth": {"insecure": True},
            "settings": {"token_issuers": [{"issuer": "https://i", "audience": "l"}]},
        },
        "found both",
    ),
    "an unknown setting": ({**SMALL, "settings": {"gc_intervall": 1}}, "gc_intervall"),
    "a value of the chart": ({**SMALL, "settings": {"root": "s3://b/c"}}, "root"),
    "an unknown value": ({**SMALL, "replica": 2}, "replica"),
    "a directory without a volume": ({**SMALL, "root": "/var/lib/lance-namespace/c"}, "persistence"),
    "backups of nothing": ({**SMALL, "backup": {"enabled": True}}, "backup.destination: expected"),
    "backups of a volume of the server alone": (
        {
            **SMALL,
            "root": "/var/lib/lance-namespace/c",
            "persistence": {"enabled": True},
            "backup": {"enabled": True, "destination": "s3://b/c"},
        },
        "expected ReadWriteMany",
    ),
    "two servers of one volume": (
        {**SMALL, "root": "/var/lib/lance-namespace/c", "replicas": 2, "persistence": {"enabled": True}},
        "ReadWriteMany",
    ),
    "more waiting rows than their volume holds": (
        {**SMALL, "temporary": {"sizeLimit": "4Gi"}, "settings": {"max_spool_bytes": (4 << 30) + 1}},
        "expected at most temporary.sizeLimit, 4Gi, found 4294967297",
    ),
    "a size that is none": ({**SMALL, "temporary": {"sizeLimit": "4 GB"}}, "sizeLimit"),
}


@pytest.fixture(scope="module")
def tools() -> Path:
    made = subprocess.run(
        [REPOSITORY / "scripts/deploy_tools.sh"], stdout=subprocess.PIPE, text=True, check=True, timeout=1_200
    )
    return Path(made.stdout.strip())


def helm(tools: Path, home: Path, command: list[str], values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    file = home / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return subprocess.run(
        [tools / "helm", *command, CHART, "--values", file, "--kube-version", "1.35"],
        capture_output=True,
        text=True,
        check=False,
    )


def rendered(tools: Path, home: Path, values: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    made = helm(tools, home, ["template", "r", "--namespace", "data"], values)
    assert made.returncode == 0, made.stderr
    documents = [each for each in yaml.safe_load_all(made.stdout) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def environment(objects: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    [container] = objects["StatefulSet", "r-lance-namespace"]["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value") for variable in container["env"]}


@pytest.mark.parametrize("name", VALUES)
def test_kubernetes_takes_what_helm_makes(tools: Path, tmp_path: Path, name: str) -> None:
    linted = helm(tools, tmp_path, ["lint", "--strict"], VALUES[name])
    assert linted.returncode == 0, linted.stdout
    objects = rendered(tools, tmp_path, VALUES[name])
    own = [each for each in objects.values() if "monitoring.coreos.com" not in each["apiVersion"]]
    assert len(own) >= 3
    for each in own:
        each["metadata"].setdefault("namespace", "data")
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(own))
    for version in ("1.35", "1.37"):
        found = subprocess.run(
            [tools / "kubernetes-validate", "--strict", "-k", version, file],
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stdout + found.stderr


def test_kubernetes_takes_the_process_that_delivers_events(tools: Path) -> None:
    for version in ("1.35", "1.37"):
        subprocess.run(
            [tools / "kubernetes-validate", "--strict", "-k", version, REPOSITORY / "deploy/kubernetes/deliver.yaml"],
            check=True,
        )


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_do_not_fit_are_refused(tools: Path, tmp_path: Path, name: str) -> None:
    values, message = REFUSED[name]
    refused = helm(tools, tmp_path, ["template", "r"], values)
    assert refused.returncode != 0
    assert message in refused.stderr


def test_backups_are_made_by_a_job_of_its_own_and_missed(tools: Path, tmp_path: Path) -> None:
    objects = rendered(tools, tmp_path, VALUES["backups"])
    job = objects["CronJob", "r-lance-namespace-backup"]["spec"]["jobTemplate"]["spec"]["template"]
    [container] = job["spec"]["containers"]
    assert container["args"] == ["backup", "s3://elsewhere/backups", "--heads"]
    found = {variable["name"]: variable["value"] for variable in container["env"]}
    assert found.keys() == {f"LANCE_NAMESPACE_{name}" for name in ("ROOT", "STORAGE", "MANIFEST_STORE")}
    # No service takes the pod for a server.
    servers = objects["StatefulSet", "r-lance-namespace"]["spec"]["selector"]["matchLabels"]
    assert not servers.items() <= job["metadata"]["labels"].items()
    rules = {
        rule["alert"]: rule
        for group in objects["PrometheusRule", "r-lance-namespace"]["spec"]["groups"]
        for rule in group["rules"]
    }
    assert rules["LanceNamespaceBackupOld"]["expr"].endswith("> 172800")
    assert rules["LanceNamespaceBackupMissing"]["for"] == "172800s"
    assert {rule["annotations"]["runbook_url"] for rule in rules.values()} == {"https://docs.example.org/monitoring/"}


def test_a_server_that_waits_for_its_store_is_not_ended(tools: Path, tmp_path: Path) -> None:
    [container] = rendered(tools, tmp_path, SMALL)["StatefulSet", "r-lance-namespace"]["spec"]["template"]["spec"][
        "containers"
    ]
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert paths == {"startup": "/health/live", "readiness": "/health/ready", "liveness": "/health/live"}


def test_several_servers_know_each_other(tools: Path, tmp_path: Path) -> None:
    objects = rendered(tools, tmp_path, VALUES["three servers with everything"])
    found = environment(objects)
    domain = "r-lance-namespace-pods.data.svc"
    assert found["LANCE_NAMESPACE_PEER_URL"] == f"https://$(POD_NAME).{domain}:2333"
    [container] = objects["StatefulSet", "r-lance-namespace"]["spec"]["template"]["spec"]["containers"]
    [secret] = [each for each in container["env"] if each["name"] == "LANCE_NAMESPACE_PEER_SECRET"]
    assert secret["valueFrom"] == {"secretKeyRef": {"name": "servers", "key": "peer-secret"}}
    assert yaml.safe_load(found["LANCE_NAMESPACE_ALLOWED_HOSTS"]) == ["*.example.org", f"*.{domain}"]
    assert yaml.safe_load(found["LANCE_NAMESPACE_STORAGE"]) == {"region": "eu-west-1"}
    assert objects["StatefulSet", "r-lance-namespace"]["spec"]["serviceName"] == "r-lance-namespace-pods"
    assert ("PodDisruptionBudget", "r-lance-namespace") in objects
    rules = objects["PrometheusRule", "r-lance-namespace"]["spec"]["groups"]
    assert rules == yaml.safe_load((REPOSITORY / "deploy/prometheus/alerts.yml").read_text())["groups"]
    dashboard = objects["ConfigMap", "r-lance-namespace-dashboard"]["data"]["lance-namespace.json"]
    assert dashboard == (REPOSITORY / "deploy/grafana/dashboard.json").read_text()


def test_a_server_without_keys_answers_the_names_of_its_services(tools: Path, tmp_path: Path) -> None:
    objects = rendered(tools, tmp_path, {"root": "s3://b/c", "auth": {"insecure": True}})
    name = "r-lance-namespace"
    hosts = yaml.safe_load(environment(objects)["LANCE_NAMESPACE_ALLOWED_HOSTS"])
    assert hosts[:4] == [name, f"{name}.data", f"{name}.data.svc", f"{name}.data.svc.cluster.local"]
    [server] = objects["StatefulSet", name]["spec"]["template"]["spec"]["containers"]
    assert server["readinessProbe"]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": name}]


@pytest.mark.parametrize("values", [{}, {"replicas": 2}, {"peers": {"existingSecret": "servers"}}])
def test_one_server_has_no_peers_and_several_need_a_secret(tools: Path, tmp_path: Path, values: dict[str, Any]) -> None:
    assert not [name for name in environment(rendered(tools, tmp_path, {**SMALL, **values})) if "PEER" in name]


def test_one_server_has_what_one_needs(tools: Path, tmp_path: Path) -> None:
    objects = rendered(tools, tmp_path, SMALL)
    assert not [kind for kind, _ in objects if kind in {"PodDisruptionBudget", "ServiceMonitor", "Ingress"}]
    keys = objects["Secret", "r-lance-namespace-keys"]["stringData"]["keys.toml"]
    assert keys == '"a-key-in-plain-text" = "ann"\n'


@pytest.mark.parametrize(
    ("values", "bound"),
    [
        ({}, 2 << 30),
        ({"temporary": {"sizeLimit": "512Mi"}}, 256 << 20),
        ({"temporary": {"sizeLimit": "1000001"}}, 500_000),
        ({"settings": {"max_spool_bytes": 4 << 30}}, 4 << 30),
        (
            {
                "settings": {"max_spool_bytes": 64 << 30},
                "env": [{"name": "TMPDIR", "value": "/var/lib/lance-namespace/rows"}],
            },
            64 << 30,
        ),
    ],
)
def test_waiting_rows_fit_their_volume(tools: Path, tmp_path: Path, values: dict[str, Any], bound: int) -> None:
    objects = rendered(tools, tmp_path, {**SMALL, **values})
    assert environment(objects)["LANCE_NAMESPACE_MAX_SPOOL_BYTES"] == str(bound)


def test_measurements_are_for_prometheus_alone(tools: Path, tmp_path: Path) -> None:
    policy = rendered(tools, tmp_path, SMALL)["NetworkPolicy", "r-lance-namespace"]["spec"]
    catalog, metrics = policy["ingress"]
    assert catalog == {"ports": [{"port": "catalog"}]}
    assert metrics["from"][0]["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": "prometheus"}}
    everything = rendered(tools, tmp_path, VALUES["three servers with everything"])
    catalog, _ = everything["NetworkPolicy", "r-lance-namespace"]["spec"]["ingress"]
    servers = everything["StatefulSet", "r-lance-namespace"]["spec"]["selector"]
    assert catalog["from"] == [{"namespaceSelector": {"matchLabels": {"team": "data"}}}, {"podSelector": servers}]
    closed = {**SMALL, "networkPolicy": {"enabled": False}}
    assert not [kind for kind, _ in rendered(tools, tmp_path, closed) if kind == "NetworkPolicy"]


def test_hadolint_finds_nothing(tools: Path) -> None:
    found = subprocess.run(
        [tools / "hadolint", REPOSITORY / "deploy/container/Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_a_server_starts_with_what_the_chart_sets(tools: Path, tmp_path: Path) -> None:
    values = {
        **SMALL,
        "replicas": 2,
        "peers": {"existingSecret": "servers"},
        "settings": {"gc_interval": 3600, "max_body_bytes": 67108864, "maintenance": {}},
    }
    objects = rendered(tools, tmp_path, values)
    keys = tmp_path / "keys.toml"
    keys.write_text(objects["Secret", "r-lance-namespace-keys"]["stringData"]["keys.toml"])
    given = {name: value for name, value in environment(objects).items() if name.startswith("LANCE_NAMESPACE_")}
    given |= {"LANCE_NAMESPACE_API_KEYS_FILE": str(keys), "LANCE_NAMESPACE_METRICS_PORT": str(free_port())}
    given["LANCE_NAMESPACE_PEER_SECRET"] = "a secret of servers"
    given["LANCE_NAMESPACE_PEER_URL"] = given["LANCE_NAMESPACE_PEER_URL"].replace("$(POD_NAME)", "r-lance-namespace-1")
    with ServerProcess(tmp_path / "catalog", log=tmp_path / "log", environment=given) as server:
        assert send(server.url, "GET", "/v1/namespace/%24/list").status == 401
        listed = send(server.url, "GET", "/v1/namespace/%24/list", headers={"x-api-key": "a-key-in-plain-text"})
        assert listed.status == 200
