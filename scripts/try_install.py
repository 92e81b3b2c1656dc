"""Install the wheels of this checkout as a user does, and try them: `newest` of everything, or the `lowest` bounds.

Users install without constraints.txt, so the newest releases within the bounds of both pyproject.toml have to work. So
have the oldest: `lowest` pins each direct dependency to its lower bound. What the wheels need is installed into a new
environment from the package index, and `scripts/installed_commands.py` runs the commands of the guides and a client
there. Needs no packages. Exits 1, with the output of what failed, if one does.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PROJECTS: Final = (ROOT / "client", ROOT)
_OURS: Final = ("lance-namespace-client", "lance-namespace-server")
EXTRAS: Final = ("s3", "oidc", "postgres", "otel", "console", "mcp")
_REQUIREMENT: Final = re.compile(r"([\w.-]+)(\[[\w,-]+\])?\s*(.*)")


def lowest_bounds(project: dict[str, list[str]], extras: Sequence[str] = EXTRAS) -> Iterator[str]:
    """A pin of each direct dependency, and of those of the extras, to its lower bound. Raises `ValueError` without one.

    `project` maps the name of an extra to its requirements, '' to those that are always installed.
    """
    for group in ("", *extras):
        for requirement in project[group]:
            found = _REQUIREMENT.fullmatch(requirement.partition(";")[0].strip())
            bound = None if found is None else re.search(r"(?:>=|==)\s*([\w.]+)", found[3])
            if found is None or bound is None:
                raise ValueError(f"{requirement}: expected a lower bound")
            yield f"{found[1]}=={bound[1]}"


def requirements() -> dict[str, list[str]]:
    """The requirements of both distributions by extra, without those of each other."""
    found: dict[str, list[str]] = {}
    for directory in PROJECTS:
        project = tomllib.loads((directory / "pyproject.toml").read_text())["project"]
        for extra, needed in {"": project["dependencies"], **project["optional-dependencies"]}.items():
            found.setdefault(extra, []).extend(each for each in needed if not each.startswith(_OURS))
    return found


def main() -> int:
    """Install and try; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bounds", nargs="+", choices=("newest", "lowest"))
    chosen = parser.parse_args().bounds
    for project in PROJECTS:  # what an earlier build left goes into no wheel
        shutil.rmtree(project / "build" / "lib", ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="lance-install-") as directory:
        home = Path(directory)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(home)]
        _run([*build, *map(str, PROJECTS)], home)
        client, server = sorted(home.glob("*.whl"))
        return max(_try(home, client, server, bounds) for bounds in chosen)


def _try(home: Path, client: Path, server: Path, bounds: str) -> int:
    environment = home / bounds
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    command = [python, "-m", "pip", "install", "--quiet", str(client), f"{server}[{','.join(EXTRAS)}]"]
    if bounds == "lowest":
        constraints = home / "lowest.txt"
        constraints.write_text("".join(f"{pin}\n" for pin in lowest_bounds(requirements())))
        command += ["--constraint", str(constraints)]
    work = home / f"{bounds}-work"
    work.mkdir()
    try:
        _run(command, work)
        _run([python, "-m", "pip", "check"], work)
        _run([python, str(ROOT / "scripts" / "installed_commands.py")], work)
    except subprocess.CalledProcessError as error:
        print(f"{bounds}: {' '.join(map(str, error.cmd))}: exit status {error.returncode}\n{error.output}")
        return 1
    print(f"{bounds}: installed, all commands work")
    return 0


def _run(command: Sequence[str], directory: Path) -> None:
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("LANCE_", "PYTHON"))}
    # No constraints of the machine either: what is tried is what a user gets.
    surroundings |= {"LANCE_WHEEL_WITHOUT_JAR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONSTRAINT": ""}
    subprocess.run(
        command,
        cwd=directory,
        env=surroundings,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


if __name__ == "__main__":
    sys.exit(main())
