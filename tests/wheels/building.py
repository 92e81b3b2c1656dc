"""Builds the wheels of both distributions from a copy of this checkout, and environments with what a wheel requires."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.server.servers import REPOSITORY

CLIENT, SERVER = "client", "."
"""The projects, by their directories."""
_DIRECTORIES = (
    "client",
    "lance_core",
    "migrations",
    "namespace_client",
    "namespace_console",
    "namespace_mcp",
    "namespace_server",
    "namespace_tck",
)
_MORE_DIRECTORIES = ("openapi/client", "scripts", "spark_catalog", "spark_java", "table_data")
_FILES = ("LICENSE", "README.md", "pyproject.toml", "pyspark_lance.py", "setup.py")


def copy_sources(target: Path) -> Path:
    """A copy of what wheels are built from, without the jar for Spark, so that builds leave nothing in the checkout."""
    ignored = shutil.ignore_patterns("__pycache__", "*.jar", "build", "*.egg-info")
    for name in _DIRECTORIES + _MORE_DIRECTORIES:
        shutil.copytree(REPOSITORY / name, target / name, ignore=ignored)
    for name in _FILES:
        shutil.copy(REPOSITORY / name, target)
    return target


def build_wheels(source: Path, into: Path, *projects: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build the wheels of projects of a copy, in this environment and without an index."""
    options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    places = [f"./{project}" for project in projects]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(into), *places]
    return subprocess.run(
        command, cwd=source, env=os.environ | environment, check=False, capture_output=True, text=True
    )


def pip(*arguments: str) -> None:
    """Run pip of this environment."""
    command = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def needed_by(requirements: Iterable[str], found: set[str] | None = None) -> set[str]:
    """The distributions that requirements name, and all that those need, as they are installed here."""
    known: set[str] = set() if found is None else found
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not _applies(requirement):
            continue
        name = canonicalize_name(requirement.name)
        if name not in known:
            known.add(name)
            needed_by(importlib.metadata.distribution(name).requires or (), known)
    return known


def _applies(requirement: Requirement) -> bool:
    assert requirement.marker is not None
    return requirement.marker.evaluate({"extra": ""})


class Environment:
    """A virtual environment that has links to files of distributions that are installed here, and wheels."""

    def __init__(self, place: Path, distributions: Iterable[str]) -> None:
        venv.create(place, symlinks=True)
        self.python = place / "bin" / "python"
        [self.site] = place.glob("lib/python*/site-packages")
        for name in distributions:
            self._link(importlib.metadata.distribution(name))

    def install(self, wheel: Path) -> None:
        """Install a wheel, and check that it finds what it needs."""
        pip("--python", str(self.python), "install", "--no-index", "--no-deps", str(wheel))
        pip("--python", str(self.python), "check")

    def names(self) -> set[str]:
        """The distributions that it has."""
        found = importlib.metadata.distributions(path=[str(self.site)])
        return {canonicalize_name(each.metadata["Name"]) for each in found}

    def run(self, program: str, *arguments: str, cwd: Path) -> str:
        """Run a program, without anything of the checkout. What it printed; it must not fail."""
        command = [str(self.python), "-c", program, *arguments]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANCE_", "PYTHON"))}
        done = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _link(self, distribution: importlib.metadata.Distribution) -> None:
        for file in distribution.files or ():
            if file.parts[0] == ".." or file.suffix == ".pth":
                continue
            target = self.site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.hardlink_to(Path(str(distribution.locate_file(file))).resolve())
