"""Options of reads and writes, checked: of the data source, and of tables by their names in a catalog of Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeVar, cast, get_args

from spark_catalog.tables.scans import CREATED_AT, ROW_ADDRESS, ROW_ID, UPDATED_AT, Scan, TextSearch, VectorSearch
from spark_catalog.tables.splits import MAX_BYTES, MAX_ROWS
from spark_catalog.version_names import CommitTime, NamedVersions
from table_data.batch_operations import DELIMITER, TableId, TableState
from table_data.change_feed.policy import ChangePolicy, Meaning
from table_data.errors import InvalidCall

Isolation = Literal["snapshot", "serializable"]
T = TypeVar("T")

_STORAGE: Final = "storage."
_PLACE: Final = frozenset({"uri", "path", "server", "table", "token"})
_READ: Final = _PLACE | {
    *("catalog_version", "version", "tag", "branch", "timestamp"),
    *("columns", "filter", "limit", "with_row_id", "with_row_address", "with_row_versions"),
    *("nearest.column", "nearest.vector", "nearest.k", "nearest.nprobes", "nearest.refine_factor", "nearest.metric"),
    *("search.query", "search.columns", "split_rows", "split_bytes"),
}
_CHANGES: Final = frozenset({"starting_version", "max_versions_per_trigger", "updates", "deletes", "overwrites"})
_STREAM_READ: Final = _PLACE | _CHANGES | {"columns", "with_row_id", "with_row_address", "with_row_versions"}
_WRITE: Final = _PLACE | {"version", "message", "isolation", "max_rows_per_file", "staged"}
_STREAM_WRITE: Final = _PLACE | {"message", "isolation", "max_rows_per_file", "query", "checkpointlocation"}
_NAMED_READ: Final = _READ - _PLACE
_NAMED_WRITE: Final = frozenset({"message", "isolation", "max_rows_per_file"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a table: a URI, or a name in the catalog of a server.

    Attributes:
        uri: Root of the table.
        server: URL of the catalog server.
        table: Path of the table in the catalog.
        token: API key for the server.
        storage_options: Options of Lance for the object store.
    """

    uri: str | None = None
    server: str | None = None
    table: TableId | None = None
    token: str | None = field(default=None, repr=False)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The table, for messages."""
        return DELIMITER.join(self.table) if self.table else str(self.uri)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a read. At most one of `version`, `tag` and `timestamp` is given, and `tag` without `branch`."""

    place: Place
    catalog_version: int | None = None
    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    timestamp: datetime | None = None
    columns: tuple[str, ...] | None = None
    extra_columns: tuple[str, ...] = ()
    filter: str | None = None
    limit: int | None = None
    nearest: VectorSearch | None = None
    text: TextSearch | None = None
    split_rows: int = MAX_ROWS
    split_bytes: int = MAX_BYTES

    def check_schema(self, names: Iterable[str]) -> None:
        """Raise `InvalidCall` if an explicit schema has other columns than these options."""
        named, asked = set(names), {*(self.columns or ()), *self.extra_columns}
        if not asked <= named or (self.columns is not None and asked != named):
            raise InvalidCall(f"a schema with columns {sorted(named)}: expected those of the options, {sorted(asked)}")

    @property
    def names_version(self) -> bool:
        """Whether one of the options names a version."""
        return any(
            given is not None for given in (self.catalog_version, self.version, self.tag, self.branch, self.timestamp)
        )

    def scan(self, columns: Iterable[str]) -> Scan:
        """The scan of the given columns."""
        return Scan(tuple(columns), self.filter, self.limit, self.nearest, self.text)

    def find(self, named: NamedVersions) -> TableState:
        """The version that the options name, except for `catalog_version`: it is that of `named`.

        Raises:
            MissingTable: There is no such table.
            MissingVersion: There is no such branch, tag or version.
        """
        if self.tag is not None:
            return named.tagged(self.tag)
        time = None if self.timestamp is None else CommitTime((self.timestamp - _EPOCH) // _MICROSECOND)
        return named.find(self.version if time is None else time, branch=self.branch)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write.

    Attributes:
        place: The table.
        version: For a table at a URI: the version that the write is built on, the newest if None.
        message: Text that is stored with the batch.
        isolation: Isolation of the batch.
        max_rows_per_file: Upper bound of the rows in a data file.
        staged: Path of a file on the driver that gets the staged fragments, in place of a commit.
    """

    place: Place
    version: int | None = None
    message: str | None = None
    isolation: Isolation = "snapshot"
    max_rows_per_file: int = 1_048_576
    staged: str | None = None


@dataclass(frozen=True, slots=True)
class StreamReadOptions:
    """Options of a stream of changes.

    Attributes:
        place: The table, in a catalog.
        policy: What updates, deletions and overwrites mean.
        start: First version whose changes are read, "latest" for those after the start of the query. None for all rows
            at the start of the query, and the changes after that.
        max_versions: Versions of a micro-batch, None for all that there are.
    """

    place: Place
    policy: ChangePolicy
    start: int | Literal["latest"] | None = None
    max_versions: int | None = None


@dataclass(frozen=True, slots=True)
class StreamWriteOptions:
    """Options of a stream's writes.

    Attributes:
        place: The table, in a catalog.
        query: Name of the query, None for the id of its checkpoint.
        checkpoint: Location of the checkpoint, None if Spark does not state it.
        message: Text that is stored with each batch.
        isolation: Isolation of the batches.
        max_rows_per_file: Upper bound of the rows in a data file.
    """

    place: Place
    query: str | None = None
    checkpoint: str | None = None
    message: str | None = None
    isolation: Isolation = "snapshot"
    max_rows_per_file: int = 1_048_576


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a read. Raises `InvalidCall` for an unknown option, a wrong value or a contradiction."""
    options = _Options(given, _READ | _CHANGES)
    place = options.place()
    if options.text("catalog_version") is not None and place.server is None:
        raise InvalidCall("option catalog_version: expected option server with it")
    return _read_options(options, place)


def named_read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a read by name in a catalog of Spark, which knows the place. Raises `InvalidCall`."""
    return _read_options(_Options(given, _NAMED_READ, storage=False), Place())


def named_write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write by name in a catalog of Spark, which knows the place. Raises `InvalidCall`."""
    options = _Options(given, _NAMED_WRITE, storage=False)
    return WriteOptions(
        Place(),
        message=options.text("message"),
        isolation=options.isolation(),
        max_rows_per_file=options.integer("max_rows_per_file", least=1) or 1_048_576,
    )


def _read_options(options: _Options, place: Place) -> ReadOptions:
    versions = [name for name in ("version", "tag", "timestamp") if options.text(name) is not None]
    if len(versions) > 1:
        raise InvalidCall(f"options {', '.join(versions)}: expected one of them")
    if options.text("tag") is not None and options.text("branch") is not None:
        raise InvalidCall("options tag, branch: expected one of them; a tag names a version of its branch")
    flags = {
        "with_row_id": (ROW_ID,),
        "with_row_address": (ROW_ADDRESS,),
        "with_row_versions": (CREATED_AT, UPDATED_AT),
    }
    return ReadOptions(
        place,
        options.integer("catalog_version", least=1),
        options.integer("version", least=1),
        options.text("tag"),
        options.text("branch"),
        options.parsed("timestamp", _timestamp, "an ISO timestamp"),
        options.parsed("columns", _names, "names, each once, joined by commas or as a JSON list"),
        tuple(name for flag, names in flags.items() if options.flag(flag) for name in names),
        options.parsed("filter", _filter, "an SQL expression"),
        options.integer("limit", least=0),
        _vector_search(options),
        _text_search(options),
        options.integer("split_rows", least=1) or MAX_ROWS,
        options.integer("split_bytes", least=1) or MAX_BYTES,
    )


def stream_read_options(given: Mapping[str, str]) -> StreamReadOptions:
    """Parse the options of a stream of changes. Raises `InvalidCall` as `read_options` does."""
    options = _Options(given, _STREAM_READ)
    place = options.place()
    if place.server is None:
        raise InvalidCall("a stream is read from a table in a catalog: expected options server and table, found uri")
    start = options.text("starting_version")
    return StreamReadOptions(
        place,
        ChangePolicy(
            options.choice("updates", Meaning),
            options.choice("deletes", Meaning),
            options.choice("overwrites", Meaning),
        ),
        "latest" if start == "latest" else options.integer("starting_version", least=1),
        options.integer("max_versions_per_trigger", least=1),
    )


def is_stream_read(given: Mapping[str, str]) -> bool:
    """Whether options are of a stream of changes only."""
    return not _CHANGES.isdisjoint(name.lower() for name in given)


def refuse_stream_options(given: Mapping[str, str]) -> None:
    """Raise `InvalidCall` if options of a batch read are those of a stream."""
    found = sorted(name for name in given if name.lower() in _CHANGES)
    if found:
        raise InvalidCall(f"options {', '.join(found)}: expected with spark.readStream; a batch read is of one version")


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write. Raises `InvalidCall` for an unknown option, a wrong value or a contradiction."""
    options = _Options(given, _WRITE)
    place = options.place(both=options.text("staged") is not None)
    version = options.integer("version", least=1)
    if version is not None and place.uri is None:
        raise InvalidCall("option version: expected with option uri; a catalog rebases what is written by name")
    of_batches = [name for name in ("message", "isolation") if options.text(name) is not None]
    if of_batches and (place.server is None or options.text("staged") is not None):
        raise InvalidCall(f"options {', '.join(of_batches)}: expected in a write that commits a batch of a catalog")
    return WriteOptions(
        place,
        version,
        options.text("message"),
        options.isolation(),
        options.integer("max_rows_per_file", least=1) or 1_048_576,
        options.text("staged"),
    )


def stream_write_options(given: Mapping[str, str]) -> StreamWriteOptions:
    """Parse the options of a sink. Raises `InvalidCall` for an unknown option, a wrong value or a contradiction."""
    options = _Options(given, _STREAM_WRITE)
    place = options.place()
    if place.server is None:
        raise InvalidCall("a stream is written to a table in a catalog: expected options server and table, found uri")
    return StreamWriteOptions(
        place,
        options.text("query"),
        options.text("checkpointlocation"),
        options.text("message"),
        options.isolation(),
        options.integer("max_rows_per_file", least=1) or 1_048_576,
    )


def is_stream_write(given: Mapping[str, str]) -> bool:
    """Whether options are those of a sink: Spark adds the location of the checkpoint."""
    return any(name.lower() in ("query", "checkpointlocation") for name in given)


def _vector_search(options: _Options) -> VectorSearch | None:
    vector = options.parsed("nearest.vector", _vector, "a JSON list of numbers")
    column = options.text("nearest.column")
    if vector is None or column is None:
        given = [name for name in _READ if name.startswith("nearest.") and options.text(name) is not None]
        if given:
            raise InvalidCall(
                f"options {', '.join(sorted(given))}: expected nearest.column and nearest.vector with them"
            )
        return None
    return VectorSearch(
        column,
        vector,
        options.integer("nearest.k", least=1) or 10,
        options.integer("nearest.nprobes", least=1),
        options.integer("nearest.refine_factor", least=1),
        options.text("nearest.metric"),
    )


def _text_search(options: _Options) -> TextSearch | None:
    query = options.text("search.query")
    columns = options.parsed("search.columns", _names, "names, each once, joined by commas or as a JSON list")
    if query is None:
        if columns is not None:
            raise InvalidCall("option search.columns: expected search.query with it")
        return None
    return TextSearch(query, columns or ())


class _Options:
    """Options by lower-case name. Raises `InvalidCall` for unknown names and wrong values."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str], *, storage: bool = True) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        unknown = sorted(
            name for name in self._given if name not in known and not (storage and name.startswith(_STORAGE))
        )
        if unknown:
            raise InvalidCall(f"options {', '.join(unknown)}: expected options among {', '.join(sorted(known))}")

    def text(self, name: str) -> str | None:
        return self._given.get(name)

    def integer(self, name: str, *, least: int) -> int | None:
        value = self.parsed(name, _integer, "a whole number")
        if value is not None and value < least:
            raise InvalidCall(f"option {name}: expected a number from {least}, found {value}")
        return value

    def flag(self, name: str) -> bool:
        return bool(self.parsed(name, lambda text: _BOOLEANS[text.lower()], "true or false"))

    def parsed(self, name: str, parse: Callable[[str], T], expected: str) -> T | None:
        text = self._given.get(name)
        if text is None:
            return None
        try:
            return parse(text)
        except (ValueError, KeyError, TypeError):
            raise InvalidCall(f"option {name}: expected {expected}, found {text[:80]!r}") from None

    def isolation(self) -> Isolation:
        return cast("Isolation", self.choice("isolation", Isolation))

    def choice(self, name: str, choices: Any) -> Any:
        """One of the values of a `Literal`, the first one by default."""
        values = get_args(choices)
        value = self._given.get(name, values[0])
        if value not in values:
            raise InvalidCall(f"option {name}: expected {' or '.join(values)}, found {value!r}")
        return value

    def place(self, *, both: bool = False) -> Place:
        uri = self.text("uri") or self.text("path")
        if self.text("uri") and self.text("path"):
            raise InvalidCall("options uri, path: expected one of them")
        server, table = self.text("server"), self.parsed("table", _table_id, "names, joined by $")
        storage = {
            name.removeprefix(_STORAGE): value for name, value in self._given.items() if name.startswith(_STORAGE)
        }
        if server is not None and (table is None or uri is not None):
            raise InvalidCall("option server: expected option table with it, and no uri or path")
        if server is None and uri is None:
            raise InvalidCall("expected option uri (or a path), or options server and table")
        if server is None and self.text("token") is not None:
            raise InvalidCall("option token: expected option server with it")
        if server is None and table is not None and not both:
            raise InvalidCall("option table: expected option server with it")
        return Place(uri.rstrip("/") if uri else None, server, table, self.text("token"), storage)


def _integer(text: str) -> int:
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise ValueError(text)  # int() would take 1_0, blanks and digits of other scripts
    return int(text)


def _filter(text: str) -> str:
    """A filter; one that is empty, as a variable that is not set gives, must not mean all rows."""
    if not text.strip():
        raise ValueError(text)
    return text


def _table_id(text: str) -> TableId:
    names = tuple(text.split(DELIMITER))
    if not all(names):
        raise ValueError(text)
    return names


def _names(text: str) -> tuple[str, ...]:
    if text.lstrip().startswith("["):
        names: Any = json.loads(text)
        if not all(isinstance(name, str) for name in names):
            raise ValueError(text)
    else:
        names = [name.strip() for name in text.split(",")]
    if not names or not all(names) or len(set(names)) != len(names):
        raise ValueError(text)
    return tuple(names)


def _vector(text: str) -> tuple[float, ...]:
    vector = tuple(float(number) for number in json.loads(text))
    if not vector:
        raise ValueError(text)
    return vector


def _timestamp(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
