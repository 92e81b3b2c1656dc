"""Commands on a catalog, which is a server's (`--url`) or is opened in the command's process (`--root`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperOption

from namespace_server.cli.command import VerboseCommand, refusal
from namespace_server.cli.options import opened_catalog, storage_options

if TYPE_CHECKING:
    from namespace_client import Catalog

_SERVER: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class CatalogTarget:
    """The options of a command that say which catalog is meant, and how to reach it.

    `is_given` tells whether an option names the catalog, and not the environment.
    """

    url: str | None = None
    root: str | None = None
    profile: str | None = None
    api_key: str | None = None
    token: str | None = None
    storage_option: tuple[str, ...] = ()
    manifest_store: str | None = None
    durability: str | None = None
    as_json: bool = False
    is_given: bool = False


_NAMES_A_CATALOG: Final = ("url", "root", "profile")
_OPTIONS: Final[tuple[dict[str, Any], ...]] = (
    {"param_decls": ["--url"], "envvar": "LANCE_NAMESPACE_URL", "help": "Address of the catalog's server."},
    {
        "param_decls": ["--root"],
        "envvar": "LANCE_NAMESPACE_ROOT",
        "help": "Directory or URI of the catalog, to work without a server.",
    },
    {
        "param_decls": ["--profile"],
        "envvar": "LANCE_NAMESPACE_PROFILE",
        "help": "Name of a profile in the user's configuration.",
    },
    {"param_decls": ["--api-key"], "help": "API key for the server, over LANCE_NAMESPACE_API_KEY."},
    {"param_decls": ["--token"], "help": "Bearer token for the server, over LANCE_NAMESPACE_TOKEN."},
    {
        "param_decls": ["--storage-option"],
        "multiple": True,
        "help": "NAME=VALUE for the object store, over LANCE_NAMESPACE_STORAGE__NAME; may be repeated.",
    },
    {
        "param_decls": ["--manifest-store"],
        "envvar": "LANCE_NAMESPACE_MANIFEST_STORE",
        "help": "Database that decides commits, if one does; with --root.",
    },
    {
        "param_decls": ["--durability"],
        "help": "fsync: a commit is on the disk before the command ends; none: it is not. With --root.",
    },
    {"param_decls": ["--json", "as_json"], "is_flag": True, "help": "Print one JSON document."},
)


class CatalogCommand(VerboseCommand):
    """A command on a catalog. Its function takes a `typer.Context`, whose `obj` is the `CatalogTarget`."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.params += [TyperOption(rich_help_panel="Catalog", **each) for each in _OPTIONS]

    def invoke(self, ctx: Any) -> Any:
        """Run the command with its catalog."""
        given = {name: ctx.params.pop(name) for name in _FIELDS & ctx.params.keys()}
        is_option = {name: ctx.get_parameter_source(name).name == "COMMANDLINE" for name in _NAMES_A_CATALOG}
        if any(is_option.values()):  # an option counts more than the environment
            given |= {name: None for name, is_one in is_option.items() if not is_one}
        given["storage_option"] = tuple(given["storage_option"] or ())
        ctx.obj = CatalogTarget(**given, is_given=any(is_option.values()))
        return super().invoke(ctx)


_FIELDS: Final = frozenset(each.name for each in fields(CatalogTarget))


@contextmanager
def connected(context: typer.Context, *, new: bool = False) -> Iterator[Catalog]:
    """The catalog that a command is about, open within.

    A root without a catalog is refused, since it may be mistyped; with `new` the first change makes the catalog there.
    """
    found: CatalogTarget = context.obj
    named = [name for name in _NAMES_A_CATALOG if getattr(found, name) is not None]
    if not named or ("root" in named and len(named) > 1):
        told = " and ".join(f"--{name}" for name in named) or "none"
        raise refusal(f"expected --url, --root or --profile, or LANCE_NAMESPACE_URL or _ROOT, found {told}")
    from namespace_client import Catalog

    options = storage_options(list(found.storage_option))
    if found.root is None:
        if found.url is not None and not found.url.startswith(_SERVER):
            raise refusal(f"--url {found.url}: expected http://host:port or https://host:port")
        with Catalog.connect(
            found.url,
            api_key=found.api_key,
            token=found.token,
            profile=found.profile,
            storage_options=options or None,
        ) as catalog:
            yield catalog
        return
    if found.root.startswith(_SERVER):
        raise refusal(f"--root {found.root}: expected a directory or the URI of a bucket; a server goes with --url")
    from namespace_server.directory.namespace import DirectoryNamespace

    stores = list(found.storage_option), found.manifest_store, found.durability
    with opened_catalog(found.root, *stores) as stored:
        target: Any = DirectoryNamespace(catalog=stored)  # its methods take more than `Namespace` says
        with Catalog.connect(target, storage_options=options) as catalog:
            if not new and catalog.access.state().version == 0:
                raise refusal(f"{found.root}: expected a catalog, found none")
            yield catalog


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
