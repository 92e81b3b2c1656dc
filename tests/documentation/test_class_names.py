"""A class name stands for one thing in the whole product."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.documentation.pages import REPOSITORY

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
