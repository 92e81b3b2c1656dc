"""Names of tables and namespaces as arguments of procedures."""

from __future__ import annotations

from spark_catalog.sql.catalog_requests import check_names
from spark_catalog.sql.errors import InvalidStatement
from table_data.batch_operations import TableId


def table_path(text: str) -> TableId:
    """A table named as `namespace.table`; backticks around names that hold dots."""
    names = parse_names(text)
    if len(names) < 2:
        raise InvalidStatement(f"table {text!r}: expected namespace.table")
    return names


def parse_names(text: str) -> TableId:
    """The names of a dotted name; backticks around those that hold dots. Raises `InvalidStatement`."""
    names: list[str] = []
    rest = text
    while rest:
        if rest.startswith("`"):
            name, closing, rest = rest[1:].partition("`")
            if not closing:
                raise InvalidStatement(f"table {text!r}: expected a closing backtick")
        else:
            name, _, following = rest.partition(".")
            rest = f".{following}" if _ else ""
        names.append(name)
        if rest and not rest.startswith("."):
            raise InvalidStatement(f"table {text!r}: expected a dot after {name!r}")
        rest = rest[1:]
    if not names or not all(names):
        raise InvalidStatement(f"table {text!r}: expected namespace.table")
    check_names(names)
    return tuple(names)
