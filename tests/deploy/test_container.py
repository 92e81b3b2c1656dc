"""The image, the compose file and the chart name settings, files and versions that exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from namespace_server.serving import _LAST_WORK
from namespace_server.settings import Settings
from scripts.try_install import requirements
from tests.server.servers import REPOSITORY, ServerProcess

DEPLOY = REPOSITORY / "deploy"
DOCKERFILE = (DEPLOY / "container/Dockerfile").read_text("utf-8")
HEALTH = DEPLOY / "container/healthcheck.py"
COMPOSE = DEPLOY / "compose/compose.yaml"
CHART = DEPLOY / "helm/lance-namespace"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
VARIABLE = re.compile(r"LANCE_NAMESPACE_([A-Z_]+)")
OF_BUILD = {"WHEEL_WITHOUT_JAR"}


def settings_in(text: str) -> set[str]:
    return {name.lower() for name in VARIABLE.findall(text)}


def test_settings_in_files_exist() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix in {".yaml", ".py", ".tpl", ""}]
    assert len(files) > 8
    for path in files:
        names = settings_in(path.read_text("utf-8")) - {""}
        if path.name == "deliver.yaml":  # of a client
            names -= {"url", "api_key"}
        assert names <= Settings.model_fields.keys(), path


def test_what_is_copied_into_the_image_exists() -> None:
    kept = [line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert [name for name in kept if not (REPOSITORY / name).exists()] == []
    assert "./client" in DOCKERFILE
    packages = {path.parent.name for path in REPOSITORY.glob("*/__init__.py")} - {"benchmarks", "scripts", "tests"}
    assert packages <= set(kept)
    copied = re.findall(r"^COPY (?!--from)(\S+) /", DOCKERFILE, re.MULTILINE)
    assert copied
    assert all((REPOSITORY / path).is_file() and str(Path(path).parent) in kept for path in copied)
    [extras] = re.findall(r"^ARG EXTRAS=(\S+)", DOCKERFILE, re.MULTILINE)
    assert set(extras.split(",")) == PROJECT["optional-dependencies"].keys() - {"dev"}
    assert DOCKERFILE.rindex("USER 10001:10001") > DOCKERFILE.rindex("RUN ")


@pytest.mark.parametrize(
    ("settings", "hosts"),
    [({}, ""), ({"LANCE_NAMESPACE_ALLOWED_HOSTS": "*.example.org"}, "*.example.org, b"), ({}, '["localhost"]')],
)
def test_the_health_check_asks_the_server(tmp_path: Path, settings: dict[str, str], hosts: str) -> None:
    def check(port: int) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LANCE_NAMESPACE_PORT": str(port), "LANCE_NAMESPACE_ALLOWED_HOSTS": hosts}
        return subprocess.run([sys.executable, HEALTH], env=environment, capture_output=True, text=True, check=False)

    with ServerProcess(tmp_path / "catalog", log=tmp_path / "log", environment=settings) as server:
        port = int(server.url.rpartition(":")[2])
        found = check(port)
        assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    found = check(port)
    assert (found.returncode, found.stderr) == (1, "")
    assert "refused" in found.stdout


def test_the_compose_file_is_whole() -> None:
    compose = yaml.safe_load(COMPOSE.read_text("utf-8"))
    services: dict[str, Any] = compose["services"]
    example = (COMPOSE.parent / "example.env").read_text()
    needed = set(re.findall(r"\$\{([A-Z_0-9]+):\?", COMPOSE.read_text("utf-8")))
    assert needed == set(re.findall(r"^([A-Z_0-9]+)=", example, re.MULTILINE))
    for name, service in services.items():
        assert ("image" in service) != ("build" in service), name
        assert service.get("depends_on", {}) == {} or set(service["depends_on"]) <= services.keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (COMPOSE.parent / source).resolve().is_file(), volume
    server = services["server"]
    assert (COMPOSE.parent / server["build"]["context"]).resolve() == REPOSITORY
    assert (REPOSITORY / server["build"]["dockerfile"]).is_file()
    grace = int(server["stop_grace_period"].removesuffix("s"))
    assert grace > Settings.model_fields["shutdown_timeout"].default + _LAST_WORK
    [scrape] = yaml.safe_load((COMPOSE.parent / "prometheus.yml").read_text())["scrape_configs"]
    target = f"server:{server['environment']['LANCE_NAMESPACE_METRICS_PORT']}"
    assert (scrape["job_name"], scrape["static_configs"]) == ("lance-namespace", [{"targets": [target]}])


def test_the_chart_takes_every_setting() -> None:
    schema = json.loads((CHART / "values.schema.json").read_bytes())
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    jsonschema.validate(values, schema)
    own = settings_in((CHART / "templates/statefulset.yaml").read_text("utf-8"))
    free = set(schema["properties"]["settings"]["propertyNames"]["enum"])
    # Keys are a secret, and so a file. The bound of waiting rows, and the names of a server without keys, are set where
    # `settings` does not.
    assert free | own | {"api_keys"} == Settings.model_fields.keys()
    assert free & own == {"allowed_hosts", "max_spool_bytes"}
    assert schema["properties"].keys() - {"global"} == values.keys()
    assert not schema["additionalProperties"]
    grace = values["terminationGracePeriodSeconds"]
    assert grace > Settings.model_fields["shutdown_timeout"].default + _LAST_WORK


def test_images_are_known_by_their_digest() -> None:
    [base] = re.findall(r"^ARG PYTHON=(.*)", DOCKERFILE, re.MULTILINE)
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    images = re.findall(r"^\s+image: \$\{[A-Z_]+:-(.*)\}$", COMPOSE.read_text("utf-8"), re.MULTILINE)
    assert set(stages) == {"python:${PYTHON}"}
    assert len(images) == 4
    assert [
        image for image in (f"python:{base}", *images) if not re.search(r"^[^@]+:[^@]+@sha256:[0-9a-f]{64}$", image)
    ] == []


@pytest.mark.parametrize("lock", ["requirements.txt", "deploy/container/requirements.txt"])
def test_what_is_installed_is_known_by_its_hash(lock: str) -> None:
    logical = (REPOSITORY / lock).read_text("utf-8").replace("\\\n", " ").splitlines()
    entries = {
        canonicalize_name(found[1]): found[2]
        for line in logical
        if (found := re.match(r"([A-Za-z0-9._-]+)==(\S+) .*--hash=sha256:[0-9a-f]{64}", line))
    }
    assert len(entries) == len([line for line in logical if line and not line.startswith("#")])
    pinned = dict(
        line.split("==") for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if "==" in line
    )
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    assert {name: version for name, version in entries.items() if versions.get(name, version) != version} == {}
    extras = ["", "s3", "azure", "console", "gcs", "oidc", "otel", "postgres"]
    if lock == "requirements.txt":
        extras += ["dev", "ray", "spark"]
    needed = [Requirement(each) for extra in extras for each in requirements()[extra]]
    assert len(needed) > 30
    for requirement in needed:
        assert requirement.specifier.contains(entries[canonicalize_name(requirement.name)]), requirement


def test_compose_hardens_every_container() -> None:
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    for name, service in services.items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    [temporary] = services["server"]["tmpfs"]
    waiting = int(services["server"]["environment"]["LANCE_NAMESPACE_MAX_SPOOL_BYTES"])
    assert 2 * waiting <= int(temporary.removeprefix("/tmp:size=").removesuffix("g")) << 30


def test_versions_are_one() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    client = tomllib.loads((REPOSITORY / "client/pyproject.toml").read_text("utf-8"))["project"]
    assert chart["version"] == chart["appVersion"] == PROJECT["version"] == client["version"]
    assert f"lance-namespace-client=={client['version']}" in PROJECT["dependencies"]
    assert (CHART / "files/alerts.yml").resolve() == DEPLOY / "prometheus/alerts.yml"
    assert (CHART / "files/dashboard.json").resolve() == DEPLOY / "grafana/dashboard.json"
