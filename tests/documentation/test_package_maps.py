"""The docstring of a package is a map of it, and the design notes name classes that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.documentation.pages import REPOSITORY, literals
from tests.documentation.test_class_names import PACKAGES

_ENTRY = re.compile(r"^( *)([a-z_0-9]+(?:, [a-z_0-9]+)*)/? {2,}\S", re.MULTILINE)
"""A line of a map: a module, or some, and what is there."""


def _maps() -> dict[str, tuple[set[str], str]]:
    """The modules of each package, and its docstring, if that has more than a paragraph."""
    found: dict[str, tuple[set[str], str]] = {}
    for name in PACKAGES:
        for path in sorted((REPOSITORY / name).rglob("__init__.py")):
            text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
            modules = {each.stem for each in path.parent.glob("*.py")} - {"__init__", "__main__"}
            modules |= {each.parent.name for each in path.parent.glob("*/__init__.py")}
            if len(_ENTRY.findall(text)) > 1:
                found[str(path.parent.relative_to(REPOSITORY))] = (modules, text)
    return found


def test_a_map_names_all_modules_of_its_package() -> None:
    maps = _maps()

    assert len(maps) > 40
    missing = {name: modules - set(re.findall(r"\w+", text)) for name, (modules, text) in maps.items()}
    assert {name: modules for name, modules in missing.items() if modules} == {}


def test_a_map_names_no_other_modules() -> None:
    other = {name: _named(text) - modules for name, (modules, text) in _maps().items()}

    assert {name: entries for name, entries in other.items() if entries} == {}


def _named(text: str) -> set[str]:
    """The modules of the entries of a map; further ones below an entry are those of a package within."""
    entries = _ENTRY.findall(text)
    first = min(len(indent) for indent, _ in entries)
    return {name for indent, names in entries if len(indent) == first for name in names.split(", ")}


def test_classes_that_design_notes_name_are_in_the_sources() -> None:
    sources = [*(REPOSITORY / "tests").rglob("*.py"), *(REPOSITORY / "spark_java").rglob("*.java")]
    sources += [path for name in PACKAGES for path in (REPOSITORY / name).rglob("*.py")]
    sources += (REPOSITORY / "protos").glob("*.proto")
    words = set(re.findall(r"\w+", "\n".join(path.read_text("utf-8") for path in sources)))
    pages = [*(REPOSITORY / "docs" / "design").glob("*.md"), REPOSITORY / "CONTRIBUTING.md"]
    named = {(page.name, name) for page in pages for name in _class_names(page)}

    assert len(named) > 50
    assert {(page, name) for page, name in named if name not in words} == set()


def _class_names(page: Path) -> set[str]:
    """Names in capitals inside of words, such as `ManifestReader`, also before a method."""
    return {name for text in literals(page) for name in re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]*)+\b", text)}
