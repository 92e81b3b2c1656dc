"""A zip file of this package and its siblings, for executors that have their dependencies only."""

from __future__ import annotations

import importlib.util
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

_PACKAGES: Final = ("lance_core", "namespace_client", "spark_catalog", "table_data")
_MODULES: Final = ("pyspark_lance",)
_NAME: Final = "lance-spark-catalog.zip"


@cache
def package_zip() -> Path:
    """A zip file with the Python modules that tasks import, for `spark.submit.pyFiles`. Removed with this process."""
    directory = tempfile.TemporaryDirectory(prefix="lance-spark-")
    _kept.append(directory)
    file = Path(directory.name) / _NAME
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, name in _modules():
            archive.write(source, name)
    return file


_kept: Final[list[tempfile.TemporaryDirectory[str]]] = []
"""Directories that are removed when the interpreter ends."""


def _modules() -> Iterator[tuple[Path, str]]:
    """Files of the packages, each with its name in the zip file."""
    for name in _PACKAGES:
        root = _origin(name).parent
        for file in sorted(root.rglob("*.py")):
            yield file, f"{name}/{file.relative_to(root).as_posix()}"
    for name in _MODULES:
        yield _origin(name), f"{name}.py"


def _origin(name: str) -> Path:
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin)
