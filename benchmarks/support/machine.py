"""A description of the machine and the library versions, without names or paths that belong to the host."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

BUSY = 0.5
"""Load average above which the machine was not ours alone."""

LIBRARIES = ("pylance", "lance-namespace", "lancedb", "pyarrow", "protobuf", "fastapi", "granian", "pydantic", "orjson")


def describe_machine(directory: Path, load: float) -> list[str]:
    """Markdown list items: processor, memory, file system of `directory`, operating system, Python, libraries, day.

    `load` is the load average before the run: other work on the machine belongs to the description.
    """
    others = ", so other work took part of the machine" if load > BUSY else ""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return [
        f"{os.cpu_count()} cores, {_processor()}; {_memory_gib():.0f} GiB memory; {_file_system(directory)}",
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        libraries,
        f"measured on {datetime.now(UTC):%Y-%m-%d}; load average before the run {load:.1f}{others}",
        "the load generator shares the cores with the server",
    ]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _file_system(directory: Path) -> str:
    """The type of the file system that holds `directory`, from the longest mount point above it."""
    target = str(directory.resolve())
    kind, longest = "unknown file system", -1
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _device, mount, file_system, *_ = line.split()
        inside = mount == "/" or target == mount or target.startswith(mount + "/")
        if inside and len(mount) >= longest:
            kind, longest = file_system, len(mount)
    return kind
