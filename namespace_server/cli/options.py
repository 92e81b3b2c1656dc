"""Options that commands share, and their meanings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import typer

from namespace_server.cli.command import refusal, server_environment
from namespace_server.durations import parse_duration
from namespace_server.interruption import raise_interrupts

if TYPE_CHECKING:
    from lance_core.commit.handlers import CommitHandler
    from namespace_client import Catalog, CatalogView
    from namespace_server.directory.catalog import StoredCatalog

Root = Annotated[str | None, typer.Option(help="Directory or URI of the catalog.")]
Config = Annotated[Path | None, typer.Option(help="TOML file with settings.", dir_okay=False)]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        help="NAME=VALUE for the object store, over LANCE_NAMESPACE_STORAGE__NAME; may be repeated.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
LogLevel = Annotated[str | None, typer.Option(help="Least level that is logged: debug, info, warning or error (info).")]
Durability = Annotated[
    str | None, typer.Option(help="fsync: a commit is on the disk before it is answered; none: it is not.")
]
ManifestStore = Annotated[
    str | None,
    typer.Option(
        help="Database that decides commits where the store cannot: sqlite:///file or postgresql+psycopg://…. "
        "A password is better kept in LANCE_NAMESPACE_MANIFEST_STORE."
    ),
]
TableManifestStore = Annotated[
    str | None,
    typer.Option(envvar="LANCE_NAMESPACE_MANIFEST_STORE", help="Database that decides its commits, if one does."),
]


def duration(option: str, text: str) -> timedelta:
    """A time such as 14d, 36h, 90m. Ends the command for another text."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise refusal(f"{option} {error}") from error


def named_values(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """The values of an option that may be repeated, NAME=VALUE each. Ends the command for two values of a name."""
    found: dict[str, str] = {}
    for item in given or ():
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise refusal(f"{option} {name}: expected NAME=VALUE")
        if found.setdefault(name, value) != value:
            raise refusal(f"{option} {name}: expected one value, found two")
    return found


def storage_options(given: Iterable[str] | None) -> dict[str, str]:
    """Options given on the command line, over those of the environment, where secrets belong."""
    surroundings: dict[str, str] = server_environment().get("storage", {})
    return surroundings | named_values("--storage-option", given)


@contextmanager
def commit_handler(manifest_store: str | None) -> Iterator[CommitHandler | None]:
    """The commit handler of an external manifest store, open within; None without one."""
    if manifest_store is None:
        yield None
        return
    from lance_core.commit.handlers import ExternalManifestHandler
    from namespace_server.store.manifests import open_manifest_store

    with closing(open_manifest_store(manifest_store)) as manifests:
        yield ExternalManifestHandler(manifests)


@contextmanager
def opened_catalog(
    root: str, options: Mapping[str, str], manifest_store: str | None, durability: str | None = None
) -> Iterator[StoredCatalog]:
    """The catalog at a root, open within, whose object store has these options. Nothing happens in the background."""
    from namespace_server.directory.properties import open_catalog, read_properties

    properties = {"root": root, "sweep_interval_seconds": "0"}
    properties |= {f"storage.{name}": value for name, value in options.items()}
    properties |= {} if manifest_store is None else {"manifest_store": manifest_store}
    properties |= {} if durability is None else {"durability": durability}
    if (concurrency := server_environment().get("storage_concurrency")) is not None:
        properties["storage_concurrency"] = str(concurrency)
    with ExitStack() as opened:
        catalog, manifests = open_catalog(read_properties(properties))
        if manifests is not None:
            opened.callback(manifests.close)
        opened.callback(catalog.close)
        raise_interrupts()
        yield catalog


def audit_directory(uri: str) -> Path | None:
    """Where servers of a root in a directory record refused attempts by default; None for another root."""
    from namespace_server.directory.model.root_layout import AUDIT

    parts = urlsplit(uri)
    return Path(unquote(parts.path)) / AUDIT if parts.scheme == "file" else None


def parse_point(text: str) -> int | datetime | str:
    """A catalog version (a number), a time (ISO 8601; local time without a zone), or else the name of a pin."""
    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return text


def at_point(catalog: Catalog, point: str | None) -> Catalog | CatalogView:
    """The catalog as it was at a point; as it is without one."""
    return catalog if point is None else catalog.at(parse_point(point))
