"""The columns of a schema, compared with those that data files list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Final

from lance_core.errors import InvalidTransaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOMBSTONE, TOP_LEVEL

_NO_COLUMN: Final = -1
_PACKED: Final = ("packed", "lance-encoding:packed")
_EMPTY: Final = frozenset({"struct", "null"})


class Columns:
    """The fields of a schema that data files may, and must, have.

    Attributes:
        ids: The ids of all fields.
    """

    def __init__(self, fields: Iterable[pb.Field]) -> None:
        self._fields = {field.id: field for field in fields}
        self.ids = self._fields.keys()

    @cached_property
    def leaves(self) -> AbstractSet[int]:
        """The ids of fields without fields below them."""
        return self.ids - {field.parent_id for field in self._fields.values()}

    def check(self, files: Iterable[pb.DataFile], what: str, *, exact: bool, dead: bool = False) -> None:
        """Raise `InvalidTransaction` if the data files of one fragment list their columns wrongly.

        Args:
            files: The data files.
            what: Names the fragment in errors.
            exact: Whether fields that the schema does not have are refused.
            dead: Whether files without a field are accepted; they are dropped.
        """
        seen: set[int] = set()
        for file in files:
            live = [field for field in file.fields if field != TOMBSTONE]
            twice = {field for field, count in Counter(live).items() if count > 1} | seen.intersection(live)
            if twice or (not live and not dead):
                found = f"field {min(twice)} twice" if twice else "no field"
                raise InvalidTransaction(f"{what}: data file {file.path} has {found}")
            seen.update(live)
            unknown = [field for field in live if field < 0 or (exact and field not in self.ids)]
            if unknown:
                raise InvalidTransaction(f"{what}: data file {file.path} has field {unknown[0]}, which is not known")
            self._check_indices(file, what)

    def require(self, files: Iterable[pb.DataFile], what: str, *, known: AbstractSet[int] = frozenset()) -> None:
        """Raise `InvalidTransaction` if a column that must not be null is missing, except those that are `known`."""
        if not self._must_be_given:
            return
        given = {self._root_of(field) for field in live_fields(files)}
        for root in self._must_be_given:
            if root not in given and root not in known:
                name = self._fields[root].name
                raise InvalidTransaction(f"{what} has no column {name!r}, which must not be null")

    def _check_indices(self, file: pb.DataFile, what: str) -> None:
        taken: set[int] = set()
        for field, column in zip(file.fields, file.column_indices, strict=False):
            if column in taken or column < _NO_COLUMN or (column == _NO_COLUMN and self._has_column(field)):
                raise InvalidTransaction(
                    f"{what}: data file {file.path} has column index {column} for field {field}: expected one of its "
                    "own"
                )
            if column != _NO_COLUMN:
                taken.add(column)

    def _has_column(self, field: int) -> bool:
        """Whether a field is known to have a column: a leaf that is in no packed struct and no list of fixed size."""
        if field not in self.leaves:
            return False
        above = self._fields.get(self._fields[field].parent_id)
        while above is not None:
            if above.logical_type.startswith("fixed_size_list") or any(key in above.metadata for key in _PACKED):
                return False
            above = self._fields.get(above.parent_id)
        return True

    @cached_property
    def _roots(self) -> dict[int, int]:
        """The top-level field above each field, or itself; parents come before their children."""
        roots: dict[int, int] = {}
        for field in self._fields.values():
            roots[field.id] = roots.get(field.parent_id, field.id)
        return roots

    @cached_property
    def _must_be_given(self) -> list[int]:
        """The top-level fields that are not nullable, and have a column in every file version."""
        fields = self._fields.values()
        required = [field.id for field in fields if field.parent_id == TOP_LEVEL and not field.nullable]
        if not required:
            return []
        stored = {self._roots[field.id] for field in fields if field.logical_type not in _EMPTY}
        return [field for field in required if field in stored]

    def _root_of(self, field: int) -> int:
        return self._roots.get(field, field)


def live_fields(files: Iterable[pb.DataFile]) -> set[int]:
    """The fields that data files provide."""
    return {field for file in files for field in file.fields if field != TOMBSTONE}
