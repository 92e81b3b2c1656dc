"""What the pages name exists: files, modules, commands and their options, settings, routes, make targets."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from namespace_server.cli import cli
from namespace_server.setting_sources import CLIENT_VARIABLES, PREFIX
from namespace_server.settings import Settings
from tests.documentation.pages import PAGES, REPOSITORY, commands, links, literals, name_of

PACKAGES = ("lance_core", "namespace_client", "namespace_server", "namespace_tck", "spark_catalog")
FOLDERS = (*PACKAGES, "tests", "docs", "examples", "benchmarks", "scripts", "openapi", "protos")
KEYS = {"lance_core.deleting"}  # an entry of a ref file's metadata
DIRECTORY = REPOSITORY / "namespace_server" / "directory"
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which tells of what was

COMMANDS: dict[str, set[str]] = {
    f"{name} {inner}".strip(): {spelling for each in found.params for spelling in (*each.opts, *each.secondary_opts)}
    for name, command in get_command(cli).commands.items()  # type: ignore[attr-defined]
    for inner, found in getattr(command, "commands", {"": command}).items()
}


def _is_path(literal: str) -> bool:
    return (
        re.fullmatch(r"[\w./-]+", literal) is not None
        and literal.split("/", maxsplit=1)[0] in FOLDERS
        and "/" in literal
    )


def _is_module(literal: str) -> bool:
    dotted = re.fullmatch(r"\w+(\.\w+)+", literal) is not None and literal not in KEYS
    return dotted and literal.split(".", maxsplit=1)[0] in PACKAGES


def _missing_files(page: Path) -> list[str]:
    return [path for path in literals(page) if _is_path(path) and not (REPOSITORY / path).exists()]


def test_the_modules_of_the_table_of_rules_exist() -> None:
    """They are written without their first two folders."""
    table = [line for line in (REPOSITORY / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("| ")]
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", "\n".join(table))
    short = [path for path in named if path.split("/")[0] not in FOLDERS]

    assert len(short) > 20
    assert [path for path in short if not (DIRECTORY / path).exists()] == []


def _missing_members(page: Path) -> list[str]:
    return [name for name in literals(page) if _is_module(name) and not _resolves(name)]


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.util.find_spec(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        if found is not None:
            held: object = importlib.import_module(".".join(parts[:length]))
            for attribute in parts[length:]:
                if not hasattr(held, attribute):
                    return False
                held = getattr(held, attribute)
            return True
    return False


def _check_commands(page: Path) -> None:
    shown = [shlex.split(line, comments=True) for line in commands(page) if "lance-namespace " in line]
    inline = [shlex.split(text) for text in literals(page) if text.startswith("lance-namespace ")]
    for words in [*shown, *inline]:
        start = next(place for place, word in enumerate(words) if word.endswith("lance-namespace"))
        command, *rest = words[start + 1 :]
        if command == "COMMAND" or command.startswith("--"):
            continue
        if rest and f"{command} {rest[0]}" in COMMANDS:
            command = f"{command} {rest.pop(0)}"
        assert command in COMMANDS, words
        options = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert options - {"--help"} <= COMMANDS[command], words


def _missing_settings(page: Path) -> set[str]:
    named = set(re.findall(r"LANCE_NAMESPACE_([A-Z][A-Z_]*[A-Z])", page.read_text()))
    fields = {name.upper() for name in Settings.model_fields}
    fields |= {name.removeprefix(PREFIX) for name in CLIENT_VARIABLES}

    return {name for name in named if name.split("__")[0] not in fields}


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_what_a_page_names_exists(page: Path) -> None:
    """Files, modules and their members, settings, commands and their options."""
    assert (_missing_files(page), _missing_members(page), _missing_settings(page)) == ([], [], set())
    _check_commands(page)


def test_every_route_of_the_specification_is_on_the_pages_of_the_http_api() -> None:
    served = yaml.load((REPOSITORY / "openapi" / "lance-namespace.yaml").read_text(), yaml.CSafeLoader)["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in served.items() for method in methods}
    written = {text for page in (REPOSITORY / "docs" / "reference").glob("wire*.md") for text in literals(page)}

    assert routes <= written
    assert {text for text in written if re.fullmatch(r"(GET|POST) /v1/\S+", text)} <= routes


def test_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named = {found for page in CURRENT for text in literals(page) for found in re.findall(r"^make ([a-z-]+)$", text)}

    assert {"demo", "test", "docs"} <= named
    assert named <= targets


@pytest.mark.parametrize("page", sorted(REPOSITORY.glob("*.md")), ids=name_of)
def test_links_of_the_pages_at_the_top_lead_somewhere(page: Path) -> None:
    """Those of the other pages are checked when the site is built."""
    here = [target.partition("#")[0] for target in links(page) if "://" not in target]

    assert [target for target in here if target and not (page.parent / target).exists()] == []
