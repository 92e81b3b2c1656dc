"""Generate from `openapi/lance-namespace.yaml`: the Python client, and two files of the server.

These are the JSON document that it serves, whose examples have their usual place, and the fields that requests of the
catalog may have, by operation.

With `--check` nothing is written: the files that differ are listed, and the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
OPENAPI = ROOT / "openapi"
DOCUMENT = ROOT / "namespace_server" / "rest" / "openapi.json"
FIELDS = ROOT / "namespace_server" / "directory" / "model" / "promised_fields.py"
PACKAGE = "lance_namespace_server_client"
NOT_OF_THE_CATALOG = frozenset({"Rows", "Query", "Schema", "Index", "Health", "Caller", "Audit"})
"""Tags of operations whose requests the catalog does not read."""
EVERYWHERE = frozenset({"identity", "context"})


def generate(spec: Path, config: Path, target: Path) -> None:
    """Generate the client of `spec` as the package directory `target`, which is replaced.

    Raises `subprocess.CalledProcessError` if the generator fails or warns.
    """
    # The generator calls ruff by name: take the one beside this interpreter, whatever PATH says.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(spec), "--config", str(config)]
    command += ["--meta", "none", "--output-path", str(target), "--overwrite", "--fail-on-warning"]
    subprocess.run(command, check=True, env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL)
    _stream_async_bodies(target)
    (target / "py.typed").touch()


CHUNKS = '''

async def chunks(payload: BinaryIO) -> AsyncIterator[bytes]:
    """The bytes of a file, for an async client, which takes no file."""
    while data := payload.read(1 << 20):
        yield data
'''


def _stream_async_bodies(target: Path) -> None:
    """Let the async functions send bodies of bytes: the generator passes a file, which httpx refuses there.

    Raises `ValueError` if the generated code is not as expected.
    """
    sending = [path for path in target.glob("api/*/*.py") if '_kwargs["content"] = body.payload' in path.read_text()]
    types = target / "types.py"
    _edit(types, ("from collections.abc import ", "from collections.abc import AsyncIterator, "))
    types.write_text(types.read_text() + CHUNKS)
    request = "    response = await client.get_async_httpx_client().request("
    for path in sending:
        _edit(
            path,
            (request, f'    kwargs["content"] = chunks(kwargs["content"])\n{request}'),
            ("Response, Unset\n", "Response, Unset, chunks\n"),
        )


def _edit(path: Path, *replacements: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in replacements:
        if text.count(old) != 1:
            raise ValueError(f"{path}: expected {old!r} once, found it {text.count(old)} times")
        text = text.replace(old, new)
    path.write_text(text)


def document(spec: Path) -> bytes:
    """The OpenAPI document as JSON, with the body of each `x-example` beside its schema.

    Raises `ValueError` for an example of an operation without a JSON body, and for such a body without one.
    """
    found = yaml.safe_load(spec.read_text())
    for operation in (each for item in found["paths"].values() for each in item.values()):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        example = operation.pop("x-example", None)
        if (content is None) != (example is None):
            raise ValueError(f"{spec}: {operation['operationId']}: expected an example if it has a JSON body")
        if content is not None:
            content["example"] = example["body"]
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def promised_fields(spec: Path) -> bytes:
    """The Python module that has the fields of each operation of the catalog: in its body, its query or its path."""
    found = yaml.safe_load(spec.read_text())
    schemas = found["components"]["schemas"]
    fields: dict[str, set[str]] = {}
    for operation in (each for item in found["paths"].values() for each in item.values()):
        if NOT_OF_THE_CATALOG.isdisjoint(operation["tags"]):
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", operation["operationId"]).lower()
            body = _resolved(found, operation.get("requestBody", {})).get("content", {}).get("application/json", {})
            fields[name] = {*EVERYWHERE, *_resolved(found, body.get("schema", {})).get("properties", ())}
            parameters = [_resolved(found, each) for each in operation.get("parameters", ())]
            fields[name] |= {each["name"] for each in parameters if each["in"] in {"query", "path"}} - {"delimiter"}
    fields["list_all_tables"] |= {"id", "delimiter"}  # the id of a database, and how the names in the answer are joined
    fields["describe_table_in_lance_types"] = fields["describe_table"]  # as some clients want to have it described
    for name, schema in schemas["CommitTableOperation"]["properties"].items():
        fields[name] = set(_resolved(found, schema)["properties"])  # in a batch
    lines = [f"{name!r}: frozenset({{{str(sorted(own))[1:-1]}}})," for name, own in sorted(fields.items())]
    text = "\n".join([FIELDS_HEAD, *lines, "}", '"""By the names of the operations."""', ""])
    ruff = [str(Path(sys.executable).parent / "ruff"), "format", "--stdin-filename", str(FIELDS), "-"]
    return subprocess.run(ruff, check=True, input=text.encode(), stdout=subprocess.PIPE).stdout


FIELDS_HEAD = '''"""The fields that requests of the catalog may have. Written by `scripts/generate_client.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIELDS: Final[Mapping[str, frozenset[str]]] = {'''


def _resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """What a node refers to, or the node itself."""
    while "$ref" in node:
        found: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def differences(expected: Path, found: Path) -> Iterator[str]:
    """Names of the files below `expected` and `found` that are not the same in both."""
    names = {path.relative_to(root) for root in (expected, found) for path in root.rglob("*") if path.is_file()}
    for name in sorted(names, key=str):
        if "__pycache__" in name.parts:
            continue
        one, other = expected / name, found / name
        if not one.is_file():
            yield f"{name}: not generated any more"
        elif not other.is_file():
            yield f"{name}: missing"
        elif not filecmp.cmp(one, other, shallow=False):
            yield f"{name}: differs"


def main() -> int:
    """Do what the command line says; returns the exit status."""
    parser = argparse.ArgumentParser(description="Generate the client and the JSON from the OpenAPI document.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the client is not current")
    check: bool = parser.parse_args().check
    current = OPENAPI / "client" / PACKAGE
    with tempfile.TemporaryDirectory() as directory:
        fresh = Path(directory) / PACKAGE
        generate(OPENAPI / "lance-namespace.yaml", OPENAPI / "generator.yaml", fresh)
        spec = OPENAPI / "lance-namespace.yaml"
        of_the_server = {DOCUMENT: document(spec), FIELDS: promised_fields(spec)}
        if check:
            stale = list(differences(fresh, current))
            differ = [path for path, data in of_the_server.items() if not path.is_file() or path.read_bytes() != data]
            stale += [f"{path.relative_to(ROOT)}: differs" for path in differ]
            print("\n".join(stale) or f"{PACKAGE}, {DOCUMENT.name} and {FIELDS.name} are current")
            return 1 if stale else 0
        shutil.rmtree(current, ignore_errors=True)
        shutil.copytree(fresh, current)
        for path, data in of_the_server.items():
            path.write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
