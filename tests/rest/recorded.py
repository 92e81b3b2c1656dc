"""The answers to one request of each operation, with the parts that differ from run to run replaced by their names.

`python -m tests.rest.recorded` writes them as they are now. They change where the published API changes, and nowhere
else: another dialect of the same routes must leave them as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.rest.promised import NAMESPACE, REQUESTS, Scene
from tests.running import running

RECORDED = Path(__file__).with_name("recorded_answers.json")
_SPEC = Path(__file__).resolve().parents[2] / "openapi" / "lance-namespace.yaml"
_VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "SHA256"),
    (re.compile(r"\b[0-9a-f]{8}_"), "HEX_"),
    (re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)"), "TIME"),
    (re.compile(r"\b1[0-9]{12}\b"), "MILLIS"),
    (re.compile(r'("(?:manifest_size|manifestSize|size_bytes|total_bytes|createAt)":)\d+'), r"\1NUMBER"),
    (re.compile(r'("(?:e_tag|index_details|transaction)":)"(?:[^"\\]|\\.)*"'), r"\1TEXT"),
    (re.compile(r"\d+(\.\d+)?(ns|µs|ms|s)\b"), "DURATION"),
    (re.compile(r"\b\d+(\.\d+)? ?(K|M)?B\b"), "BYTES"),
)
_LONG = frozenset({"ListCatalogEvents", "ListCatalogVersions"})
"""The history of all of them: no other dialect has it."""
_KEPT_HEADERS = ("content-type", "x-lance-catalog-version", "x-lancedb-version", "phalanx-version")


def record(root: Path) -> dict[str, dict[str, Any]]:
    """The answers on a new catalog, by the names of the operations."""
    operations = {
        each["operationId"]: (method.upper(), path)
        for path, item in yaml.load(_SPEC.read_text(), yaml.CSafeLoader)["paths"].items()
        for method, each in item.items()
    }
    found: dict[str, dict[str, Any]] = {}
    with running(root) as url, httpx.Client(base_url=url, timeout=60) as http:
        scene = Scene(http, root)
        scene.ask(f"/v1/namespace/{NAMESPACE}/create", {})
        for name, request in REQUESTS.items():
            if name in operations and name not in _LONG and (not RECORDED.exists() or name in expected()):
                asked = request(scene, f"recorded-{name}")
                found[name] = _recorded(asked.send(http, *operations[name]), root)
    return found


def expected() -> dict[str, dict[str, Any]]:
    """The recorded answers."""
    answers: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())
    return answers


def _recorded(answer: httpx.Response, root: Path) -> dict[str, Any]:
    headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
    if "arrow" in headers.get("content-type", ""):
        body = hashlib.sha256(answer.content).hexdigest()
    else:
        body = answer.text.replace(str(root).lstrip("/"), "ROOT")
        for pattern, name in _VARYING:
            body = pattern.sub(name, body)
    return {"status": answer.status_code, "headers": headers, "body": body}


if __name__ == "__main__":
    RECORDED.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        answers = record(Path(directory) / "root")
    RECORDED.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{len(answers)} answers\n")
