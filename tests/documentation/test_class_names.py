"""A class name stands for one thing in the whole product, and the design notes name classes that there are."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.documentation.pages import REPOSITORY, literals

OF_ENGINE_AND_CLIENT = {"AlreadyExists", "NotFound"}
"""Exceptions of stores, which users of the client never see, and the client's own, whose names are what they expect."""
PACKAGES = ("lance_core", "namespace_client", "namespace_server", "namespace_tck", "spark_catalog", "table_data")


def test_no_two_classes_have_one_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for module in sorted((REPOSITORY / package).rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text())):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(str(module.relative_to(REPOSITORY)))

    assert len(places) > 500
    for name in OF_ENGINE_AND_CLIENT:
        assert places.pop(name) == ["lance_core/errors.py", "namespace_client/errors.py"]
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


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
