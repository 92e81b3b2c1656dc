"""What is used of libraries is their public interface, or they are bounded above: a release may change the rest."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.try_install import lowest_bounds, requirements

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("lance_core", "namespace_client", "namespace_server", "namespace_tck", "spark_catalog", "table_data")
BOUNDED = {
    re.split(r"[\[<>=!~]", requirement)[0].replace("-", "_").lower()
    for group in requirements().values()
    for requirement in group
    if "<" in requirement
}
"""Libraries with an upper bound. `pylance` is imported as `lance`."""


def _imports(source: Path) -> Iterator[tuple[str, int]]:
    """The dotted names that a module imports from elsewhere, with their lines."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from ((each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((f"{node.module}.{each.name}", node.lineno) for each in node.names)


def _private_parts(source: Path, root: Path = REPOSITORY) -> Iterator[str]:
    for name, line in _imports(source):
        first, *rest = name.split(".")
        is_private = any(part.startswith("_") and not part.endswith("__") for part in rest)
        if is_private and first not in PACKAGES and first not in BOUNDED | {"lance"}:
            yield f"{source.relative_to(root)}:{line}: {name}"


def test_no_private_part_of_a_library_without_an_upper_bound_is_used() -> None:
    sources = [source for package in PACKAGES for source in (REPOSITORY / package).rglob("*.py")]
    assert len(sources) > 300
    assert [found for source in sources for found in _private_parts(source)] == []


def test_the_command_line_uses_typer_alone() -> None:
    """Its classes of options and commands, and the `click` inside of it, are made by typer, and change with it."""
    used = {
        name
        for source in (REPOSITORY / "namespace_server").rglob("*.py")
        for name, _ in _imports(source)
        if name.split(".")[0] in {"typer", "click"}
    }
    assert used == {"typer"}


def test_a_private_part_would_be_found(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("from __future__ import annotations\nimport rich._loop\nfrom httpx import _client\n")
    assert len(list(_private_parts(source, tmp_path))) == 2


def test_each_dependency_has_a_lower_bound() -> None:
    """`make test-install` tries them."""
    extras = [extra for extra in requirements() if extra not in {"", "dev"}]
    pins = set(lowest_bounds(requirements(), extras))
    assert {"typer", "httpx", "s3fs"} <= {pin.partition("==")[0] for pin in pins}
    assert len(pins) == len({pin.partition("==")[0] for pin in pins}), "two bounds of one library"
