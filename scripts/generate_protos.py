"""Compile `protos/*.proto` into `lance_core/proto`.

Without an option it writes the generated modules. With `--check` it writes nothing, and ends with status 1 after
naming the files that are not current.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import grpc_tools  # type: ignore[import-untyped]
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "protos"
TARGET = ROOT / "lance_core" / "proto"
STUB_HEADER = '# mypy: disable-error-code="type-arg"\n'  # protoc writes bare `Mapping` in its stubs


def compile_protos(target: Path) -> None:
    """Write the module and the type stub of every .proto file into `target`. Raises `RuntimeError` if one is wrong."""
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    sources = sorted(str(source) for source in SOURCES.glob("*.proto"))
    arguments = [f"-I{SOURCES}", f"-I{well_known}", f"--python_out={target}", f"--pyi_out={target}", *sources]
    if status := protoc.main(["protoc", *arguments]):
        raise RuntimeError(f"protoc ended with status {status}, expected 0")
    for stub in target.glob("*_pb2.pyi"):
        stub.write_text(STUB_HEADER + stub.read_text())


def find_stale() -> list[str]:
    """The names of generated files in the package that differ from what the sources give, or should not be there."""
    with tempfile.TemporaryDirectory() as scratch:
        compile_protos(Path(scratch))
        expected = {file.name: file.read_bytes() for file in Path(scratch).iterdir()}
    found = {file.name: file.read_bytes() for file in TARGET.glob("*_pb2.py*")}
    return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


def main() -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Compile protos/*.proto into lance_core/proto.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if the generated files are stale")
    if not parser.parse_args().check:
        compile_protos(TARGET)
        return 0
    stale = find_stale()
    for name in stale:
        print(f"{TARGET.relative_to(ROOT) / name} is not current: run `make generate`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
