"""Commands on a catalog, which is a server's (`--url`) or is opened in the command's process (`--root`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from namespace_server.cli.command import Run, refusal, verbose_command, with_options
from namespace_server.cli.options import commit_handler, opened_catalog, storage_options
from namespace_server.interruption import raise_interrupts

if TYPE_CHECKING:
    from lance_core.storage.port import ObjectStore
    from namespace_client import Catalog
    from namespace_client.connections import Connection
    from namespace_server.directory.catalog import StoredCatalog

_SERVER: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class CatalogTarget:
    """The options of a command that say which catalog is meant, and how to reach it.

    `is_given`: whether an option names the catalog, and not the environment; `has_store` likewise of the manifest
    store.
    """

    url: str | None = None
    root: str | None = None
    profile: str | None = None
    api_key: str | None = None
    token: str | None = None
    ca: Path | None = None
    storage_option: tuple[str, ...] = ()
    manifest_store: str | None = None
    durability: str | None = None
    as_json: bool = False
    is_given: bool = False
    has_store: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> CatalogTarget:
        """The target that options name, or else the environment."""
        is_given = any(given[name] is not None for name in _VARIABLES)
        named = {} if is_given else {name: environment.get(variable) for name, variable in _VARIABLES.items()}
        options = tuple(given["storage_option"] or ())
        return cls(**{**given, **named, "storage_option": options}, is_given=is_given)


_VARIABLES: Final = {name: f"LANCE_NAMESPACE_{name.upper()}" for name in ("url", "root", "profile")}
"""The options that name a catalog, each with its variable of the environment."""


def _option(kind: Any, *names: str, default: Any = None, **given: Any) -> tuple[Any, Any]:
    return Annotated[kind, typer.Option(*names, rich_help_panel="Catalog", **given)], default


_OPTIONS: Final[Mapping[str, tuple[Any, Any]]] = {
    "url": _option(str | None, "--url", help="Address of the catalog's server; else LANCE_NAMESPACE_URL."),
    "root": _option(
        str | None,
        "--root",
        help="Directory or URI of the catalog, to work without a server; else LANCE_NAMESPACE_ROOT.",
    ),
    "profile": _option(
        str | None, "--profile", help="Name of a profile in the user's configuration; else LANCE_NAMESPACE_PROFILE."
    ),
    "api_key": _option(str | None, "--api-key", help="API key for the server, over LANCE_NAMESPACE_API_KEY."),
    "token": _option(str | None, "--token", help="Bearer token for the server, over LANCE_NAMESPACE_TOKEN."),
    "ca": _option(
        Path | None,
        "--ca",
        metavar="FILE",
        help="PEM file of the authorities that may have signed the server's certificate, in place of those of the "
        "system; over LANCE_NAMESPACE_CA.",
        dir_okay=False,
    ),
    "storage_option": _option(
        list[str] | None,
        "--storage-option",
        help="NAME=VALUE for the object store, over LANCE_NAMESPACE_STORAGE__NAME and the profile; may be repeated.",
        show_default=False,
    ),
    "manifest_store": _option(
        str | None,
        "--manifest-store",
        envvar="LANCE_NAMESPACE_MANIFEST_STORE",
        show_envvar=False,
        help="Database that decides commits, if one does; with --root.",
    ),
    "durability": _option(
        str | None,
        "--durability",
        help="fsync: a commit is on the disk before the command ends; none: it is not. With --root.",
    ),
    "as_json": _option(bool, "--json", default=False, help="Print one JSON document."),
}


def catalog_command(function: Run) -> Run:
    """A command on a catalog. Its function takes a `context`, whose `obj` is the `CatalogTarget`."""

    @wraps(function)
    def run(*arguments: Any, context: typer.Context, **given: Any) -> None:
        target = CatalogTarget.of({name: given.pop(name) for name in _OPTIONS})
        source = context.get_parameter_source("manifest_store")
        context.obj = replace(target, has_store=source is not None and source.name == "COMMANDLINE")
        function(*arguments, context=context, **given)

    return verbose_command(with_options(run, function, _OPTIONS))


RootArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ROOT]", help="Root of the catalog, in place of --root.", show_default=False),
]


@contextmanager
def connected(context: typer.Context, *, new: bool = False) -> Iterator[Catalog]:
    """The catalog that a command is about, open within.

    A root without a catalog is refused, since it may be mistyped; with `new` the first change makes the catalog there.
    """
    found: CatalogTarget = context.obj
    connection = _connection(found)
    from namespace_client import Catalog

    options = _options_of(found, connection)
    if connection.is_server:
        with Catalog.connect(
            found.url,
            api_key=found.api_key,
            token=found.token,
            ca=found.ca,
            profile=found.profile,
            storage_options=options,
        ) as catalog:
            raise_interrupts()
            yield catalog
        return
    from namespace_server.directory.namespace import DirectoryNamespace

    with opened_catalog(connection.target, options, found.manifest_store, found.durability) as stored:
        target: Any = DirectoryNamespace(catalog=stored)  # its methods take more than `Namespace` says
        with Catalog.connect(target, namespace=connection.namespace or None, storage_options=options) as catalog:
            if not new and stored.snapshot().is_empty_root:
                raise refusal(f"{connection.target}: expected a catalog, found none")
            yield catalog


@contextmanager
def opened_root(context: typer.Context) -> Iterator[StoredCatalog]:
    """The catalog of a command that works on the files below its root, open within. A server's is refused."""
    found: CatalogTarget = context.obj
    connection = _local(context)
    options = _options_of(found, connection)
    with opened_catalog(connection.target, options, found.manifest_store, found.durability) as catalog:
        yield catalog


@contextmanager
def opened_store(context: typer.Context) -> Iterator[ObjectStore]:
    """The store at the root of a catalog, for a command that only looks at it; as `opened_root`."""
    found: CatalogTarget = context.obj
    connection = _local(context)
    if found.durability is not None:
        raise refusal(f"{context.info_name}: --durability: expected none of it: this command commits nothing")
    with commit_handler(found.manifest_store) as handler:
        from lance_core.commit.handlers.handler import handle
        from lance_core.storage.opening import open_store

        store = open_store(connection.target, _options_of(found, connection))
        with closing(handle(store, handler)) as handled:
            raise_interrupts()
            yield handled


def file_options(context: typer.Context) -> dict[str, str]:
    """The options of the object stores of files that are loaded or written: those that the tables' own store has."""
    return _options_of(context.obj, _connection(context.obj))


def server_of(context: typer.Context) -> str:
    """The URL of the server of a command, as logins name it. Ends the command for a root."""
    connection = _connection(context.obj)
    if not connection.is_server:
        raise refusal(f"{context.info_name}: goes with a server, found the root {connection.target}")
    return connection.target.rstrip("/")


def is_of_server(context: typer.Context) -> bool:
    """Whether a command goes to a server, and not to the files of a catalog."""
    return _connection(context.obj).is_server


def names_server(context: typer.Context) -> bool:
    """Whether a command that works on a root or asks a server is to ask one.

    Of two variables of the environment that of the root counts. False where nothing names a catalog.
    """
    found: CatalogTarget = context.obj
    if (found.root and not found.is_given) or not any(getattr(found, name) for name in _VARIABLES):
        return False
    return _connection(found).is_server


def root_options(context: typer.Context) -> dict[str, str]:
    """The options of the object store at the root of a catalog."""
    return _options_of(context.obj, _local(context))


def table_paths(context: typer.Context, names: Sequence[str] | None, what: str = "table") -> list[tuple[str, ...]]:
    """The whole paths of tables, or of namespaces: below the default namespace of the profile, if it has one."""
    from namespace_client.names import absolute, default_namespace

    given = list(names or ())
    parents = default_namespace(_connection(context.obj).namespace) if given else ()
    return [absolute(name, parents, what) for name in given]


def take_root(context: typer.Context, arguments: Sequence[str] | None, names: Sequence[str] | None) -> list[str]:
    """The arguments of a command after the root that may be the first of them, which then names the catalog.

    It is one if there is an argument more than `names` has. Where any number may follow (None), it is one unless an
    option names the catalog. Ends the command for another number of arguments.
    """
    given = list(arguments or ())
    if not context.obj.is_given and given and (names is None or len(given) > len(names)):
        root = given.pop(0)
        context.obj = replace(context.obj, url=None, profile=None, root=root, is_given=True)
    if (not given) if names is None else len(given) != len(names):
        expected = " ".join(("TABLE...",) if names is None else names) or "no argument but the root"
        raise refusal(f"expected {expected}, found {len(given)} arguments")
    return given


def _connection(found: CatalogTarget) -> Connection:
    """The connection of a command to its catalog. Ends the command where the options name none, or two."""
    from namespace_client.connections import Connection, find_connection

    named = [name for name in _VARIABLES if getattr(found, name)]
    if not named or ("root" in named and len(named) > 1):
        shown = " and ".join(f"--{name}" for name in named) or "none"
        raise refusal(f"expected --url, --root or --profile, or LANCE_NAMESPACE_URL or _ROOT, found {shown}")
    if found.url and not found.url.startswith(_SERVER):
        raise refusal(f"--url {found.url}: expected the URL of a server, of scheme http or https")
    if found.root and found.root.startswith(_SERVER):
        raise refusal(f"--root {found.root}: expected a directory or the URI of a bucket; a server goes with --url")
    if found.root is None:
        connection = find_connection(found.url, profile=found.profile, api_key=found.api_key, token=found.token)
    else:
        connection = Connection(found.root)
    for name in ("api_key", "token", "ca"):
        if not connection.is_server and getattr(found, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise refusal(f"{option}: goes with a server, found the root {connection.target}")
    if connection.is_server and found.durability is not None:
        raise refusal(f"--durability: goes with --root; the server at {connection.target} has its own setting")
    if connection.is_server and found.has_store:
        raise refusal(f"--manifest-store: goes with --root; the server at {connection.target} has its own")
    return connection


def _local(context: typer.Context) -> Connection:
    """The root of a command that cannot work through a server. Ends the command if a server is named."""
    found: CatalogTarget = context.obj
    if found.root and not found.is_given:  # of two variables of the environment the one that is of use
        found = replace(found, url=None, profile=None)
    if not any(getattr(found, name) for name in _VARIABLES):
        raise refusal(f"{context.info_name}: expected ROOT, --root, --profile or LANCE_NAMESPACE_ROOT, found none")
    connection = _connection(found)
    if connection.is_server:
        raise refusal(
            f"{context.info_name}: works on the files of a catalog, expected its root (ROOT or --root), found the "
            f"server {connection.target}"
        )
    return connection


def _options_of(found: CatalogTarget, connection: Connection) -> dict[str, str]:
    return {**connection.storage_options, **storage_options(found.storage_option)}
