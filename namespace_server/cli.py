"""The `lance-namespace` command."""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from lance_namespace.errors import LanceNamespaceError
from pydantic import ValidationError
from pydantic_settings import SettingsError

from lance_core.commit.handlers import CommitHandler, ExternalManifestHandler
from lance_core.commit.handlers.handler import handle
from lance_core.errors import LanceCoreError
from lance_core.inspection import inspect_uri, render_text
from lance_core.storage.opening import open_store
from namespace_server.app import create_app
from namespace_server.directory.model.object_ids import parse_id
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.logs import configure_logs
from namespace_server.process import tune_process
from namespace_server.rest.access_log import AccessLog
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.middleware import local_hosts
from namespace_server.serving import Server
from namespace_server.settings import Settings, explain, load_settings, read_environment

_log = logging.getLogger(__name__)

cli = typer.Typer(
    name="lance-namespace",
    help="A catalog server for Lance tables in a directory or a bucket.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Root = Annotated[str | None, typer.Option(help="Directory or URI of the catalog.")]
Config = Annotated[Path | None, typer.Option(help="TOML file with settings.", dir_okay=False)]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        help="NAME=VALUE for the object store, over LANCE_NAMESPACE_STORAGE__NAME; may be repeated.", show_default=False
    ),
]
Branch = Annotated[str | None, typer.Option(help="Branch of the table (main).")]
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


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    for package in ("lance-namespace-server", "pylance"):
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            found = "not installed"
        typer.echo(f"{package} {found}")
    typer.echo(f"Python {platform.python_version()}")
    raise typer.Exit


@cli.callback()
def main(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the versions in use and exit."),
    ] = False,
) -> None:
    """A catalog server for Lance tables in a directory or a bucket."""
    del version  # handled by its callback


@cli.command()
def serve(
    root: Root = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one (2333).")] = None,
    durability: Durability = None,
    manifest_store: ManifestStore = None,
    config: Config = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond loopback although no API keys are configured.")
    ] = False,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file with the server's certificate chain; needs --tls-key.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file with the certificate's private key.")] = None,
) -> None:
    """Serve a catalog over HTTP.

    Settings come from the options, then from LANCE_NAMESPACE_* in the environment, then from the file. Ctrl-C or
    SIGTERM ends the server once the requests that it has accepted are answered. SIGHUP reads the API keys
    in the file of `api_keys_file` again.
    """
    settings = _load(
        config,
        root=root,
        host=host,
        port=port,
        durability=durability,
        manifest_store=manifest_store,
        insecure=insecure or None,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
    )
    configure_logs(settings.log_level, settings.log_format)
    if settings.exposed:
        raise _refusal(
            f"refused to listen on {settings.host}: any client that reaches it could change the catalog. Configure API "
            "keys ([api_keys] in the settings file, LANCE_NAMESPACE_API_KEYS or LANCE_NAMESPACE_API_KEYS_FILE), "
            "listen on 127.0.0.1, or say --insecure."
        )
    authenticator = _authenticator(settings)
    tune_process()
    namespace = _open(settings)
    app = create_app(
        namespace,
        authenticator,
        limits=settings.limits,
        hosts=_hosts(settings),
        origins=settings.allowed_origins,
        access_log=_access_log(settings),
    )
    _log.info("serving %s", settings.root)
    try:
        server = Server(app, settings.serving)
    except ValueError as error:
        raise _refusal(f"settings: {error}") from error
    except OSError as error:
        typer.echo(f"lance-namespace: {settings.host}:{settings.port}: {error}", err=True)
        raise typer.Exit(3) from error
    threading.Thread(target=_check_readable, args=(namespace,), name="first-look", daemon=True).start()
    signal.signal(signal.SIGHUP, lambda *_: authenticator.reload_soon())
    authenticator.start()
    try:
        server.run(lambda: typer.echo(f"listening on {server.url}"))
    finally:
        authenticator.stop()


def _access_log(settings: Settings) -> AccessLog | None:
    is_wanted = settings.access_log and settings.log_level in {"debug", "info"}
    return AccessLog(settings.log_format) if is_wanted else None


def _hosts(settings: Settings) -> frozenset[str]:
    """The names that requests may address the server by; empty: any.

    Without keys only names of this machine, unless the server was told to listen beyond it: a page of another site
    could reach it under a name of its own (DNS rebinding).
    """
    if settings.allowed_hosts or settings.api_keys or settings.api_keys_file is not None:
        return frozenset(settings.allowed_hosts)
    return local_hosts(settings.host)


def _authenticator(settings: Settings) -> Authenticator:
    try:
        return settings.authenticator
    except (ValueError, OSError) as error:
        raise _refusal(f"settings: {error}") from error


def _check_readable(namespace: DirectoryNamespace) -> None:
    """Log why requests will fail if the catalog cannot be read. The server goes on: it may become readable.

    Runs in a thread of its own: a store that does not answer must not delay the start.
    """
    try:
        namespace.newest()
    except (LanceNamespaceError, LanceCoreError) as error:
        _log.critical("the catalog cannot be read, requests are answered with errors until it can: %s", error)


@cli.command()
def adopt(
    root: Root = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also stop plain dataset writers from changing the catalog.")
    ] = False,
    durability: Durability = None,
    manifest_store: ManifestStore = None,
    config: Config = None,
) -> None:
    """Take over a catalog that stock clients made, so that this server keeps its table versions."""
    settings = _load(config, root=root, durability=durability, manifest_store=manifest_store)
    configure_logs(settings.log_level, settings.log_format)
    namespace = _open(settings)
    try:
        adopted = namespace.adopt(strict=strict)
    except (LanceNamespaceError, LanceCoreError) as error:
        raise _refusal(str(error)) from error
    finally:
        namespace.close()
    for table_id, versions in adopted.tables:
        typer.echo(f"{'$'.join(table_id)}: {versions} version{'' if versions == 1 else 's'}")
    state = "was managed already" if adopted.already_managed else f"adopted, {len(adopted.tables)} tables"
    typer.echo(f"{settings.root}: {state}, catalog version {adopted.catalog_version}")


@cli.command()
def migrate(
    manifest_store: Annotated[
        str,
        typer.Option(
            envvar="LANCE_NAMESPACE_MANIFEST_STORE", help="The database: sqlite:///file or postgresql+psycopg://…"
        ),
    ],
    revision: Annotated[
        str, typer.Option(help="Where to: head, base (nothing of ours), or a revision in between.")
    ] = "head",
) -> None:
    """Give a database the schema of a manifest store, or move it to another revision, up or down. All or nothing."""
    from namespace_server.store.schema import migrate as move  # SQL is loaded by those who use it

    with _refusing():
        before, after = move(manifest_store, revision)
    typer.echo(f"schema {after or 'none'}" + (", as before" if before == after else f", was {before or 'none'}"))


@cli.command()
def inspect(
    target: Annotated[str, typer.Argument(metavar="PATH-OR-URI", help="A table, or one of its files.")],
    version: Annotated[int | None, typer.Option(help="Version of the table (the newest).")] = None,
    ref: Annotated[str | None, typer.Option(help="Tag or branch of the table (main).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything that is there, as JSON.")] = False,
    storage_option: StorageOptions = None,
) -> None:
    """Show what a manifest, transaction, deletion or reference file says, or a version of a table."""
    with _refusing():
        found = inspect_uri(target, version=version, ref=ref, storage_options=_storage_options(storage_option))
    typer.echo(json.dumps(found, indent=2) if as_json else render_text(found), nl=as_json)


@cli.command()
def compact(
    uri: Annotated[str, typer.Argument(metavar="URI", help="A table.")],
    target_rows: Annotated[int, typer.Option(help="Rows that a fragment should have.")] = 1 << 20,
    keep_deletions: Annotated[
        bool, typer.Option("--keep-deletions", help="Rewrite no fragment only because rows of it are deleted.")
    ] = False,
    deletions_threshold: Annotated[float, typer.Option(help="Share of deleted rows from which it is rewritten.")] = 0.1,
    max_fragments: Annotated[int | None, typer.Option(help="Rewrite at most so many, the oldest first.")] = None,
    branch: Branch = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Rewrite small fragments of a table, and those with deleted rows, into larger ones, as one commit."""
    with _refusing(), _commit_handler(manifest_store) as handler:
        from lance_core.compaction import CompactionOptions
        from lance_core.compaction import compact as compact_uri

        options = CompactionOptions(
            target_rows_per_fragment=target_rows,
            materialize_deletions=not keep_deletions,
            materialize_deletions_threshold=deletions_threshold,
            max_source_fragments=max_fragments,
        )
        done = compact_uri(
            uri, options, branch=branch, storage_options=_storage_options(storage_option), commit_handler=handler
        )
    if done.committed is None:
        typer.echo(f"{uri}: nothing to compact, version {done.version}")
        return
    typer.echo(
        f"{uri}: version {done.version}, {done.removed_fragments} fragments became {done.added_fragments}, "
        f"{done.rewritten_indices} index segments rewritten"
    )


@cli.command()
def cleanup(
    uri: Annotated[str, typer.Argument(metavar="URI", help="A table.")],
    older_than: Annotated[
        str | None, typer.Option(metavar="TIME", help="Remove versions superseded so long ago: 14d, 36h, 90m.")
    ] = None,
    keep: Annotated[int | None, typer.Option(help="Keep so many of the newest versions in any case.")] = None,
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="Age from which a file that no version ever needed may go.")
    ] = "7d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; list what would go, and why.")] = False,
    branch: Branch = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Remove old versions of a table and files that no version needs.

    A version goes when both --older-than and --keep let it; with neither of them only unneeded files do. What a tag
    names or a branch began from always stays. A shallow clone elsewhere is not known here: tag what it needs. Tables of
    a catalog that keeps their versions are refused.
    """
    with _refusing(), _commit_handler(manifest_store) as handler:
        from lance_core.cleanup import Retention
        from lance_core.cleanup import cleanup as clean_up

        retention = Retention(None if older_than is None else _duration("--older-than", older_than), keep)
        report = clean_up(
            uri,
            retention,
            branch=branch,
            grace=_duration("--grace", grace),
            dry_run=dry_run,
            storage_options=_storage_options(storage_option),
            commit_handler=handler,
        )
    for version, reason in sorted(report.kept.items()):
        if reason != "the newest version":
            typer.echo(f"kept     version {version}: {reason}")
    gone = "would go" if dry_run else "removed"
    for garbage in (*report.versions, *report.files):
        what = f"version {garbage.version} {garbage.reason}" if garbage.version is not None else garbage.reason
        typer.echo(f"{gone:<8} {garbage.path} ({garbage.size:,} bytes): {what}")
    typer.echo(f"{uri}: {len(report.versions)} versions and {len(report.files)} files {gone}, {report.size:,} bytes")


@cli.command()
def orphans(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="Directory or URI of a catalog.")],
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Judge only this table, such as 'a$t', also if its location is not the catalog's; may be repeated.",
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="AGE",
            help="Age of an orphan: 14d, 36h, 90m. Nothing tells a younger file from that of a writer that has not "
            "committed yet.",
        ),
    ] = "7d",
    as_json: Annotated[bool, typer.Option("--json", help="Everything that was found, as JSON.")] = False,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """List the files of a catalog's tables that nothing names: neither a row of the catalog nor a manifest.

    Failed tasks, aborted writes and lost commits leave such files. Nothing is removed and nothing is committed; servers
    and writers may go on. Younger files are only counted. Files of unknown names, tables whose manifests cannot be
    understood, and directories of no table are reported and not judged.
    """
    with _refusing(), _commit_handler(manifest_store) as handler:
        from namespace_server.directory.orphans import find_orphans

        with closing(handle(open_store(root, _storage_options(storage_option)), handler)) as store:
            report = find_orphans(
                store,
                now=datetime.now(UTC),
                older_than=_duration("--older-than", older_than),
                tables=[parse_id(name) for name in table or ()],
            )
    for line in (json.dumps(report.as_json(), indent=2),) if as_json else report.lines():
        typer.echo(line)


@cli.command()
def tck(
    url: Annotated[str | None, typer.Option(help="Where the server is: http://host:port.", show_default=False)] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="Header of every request, such as 'x-api-key: ...'; may be repeated.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Run only checks whose id, operation or promise matches, such as create_table, *.one_of_many_* "
            "or paging; may be repeated.",
            show_default=False,
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Also write the results as JUnit XML.", dir_okay=False)] = None,
    list_only: Annotated[bool, typer.Option("--list", help="List the checks and run none.")] = False,
) -> None:
    """Check a server against the published Lance namespace REST specification.

    The checks work in a namespace of their own with a random name, which is removed at the end, also after Ctrl-C. What
    the server does not serve is skipped by name. Exit status 0: nothing failed; 1: a check failed; 2: the server cannot
    be checked; 130: interrupted.
    """
    from namespace_tck.command import list_checks, run
    from namespace_tck.session import SessionError

    try:
        if list_only:
            status = list_checks(only or (), typer.echo)
        elif url is None:
            raise _refusal("--url: expected the address of a server")
        else:
            status = run(url, header or (), only or (), junit, typer.echo)
    except (SessionError, ValueError, OSError) as error:
        raise _refusal(str(error)) from error
    raise typer.Exit(status)


def _duration(option: str, text: str) -> timedelta:
    found = re.fullmatch(r"([0-9]+)([smhdw])", text)
    if found is None:
        raise _refusal(f"{option} {text}: expected a number and one of s, m, h, d, w, such as 14d")
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}[found[2]]
    try:
        return timedelta(seconds=int(found[1]) * seconds)
    except OverflowError as error:
        raise _refusal(f"{option} {text}: expected less than a billion days") from error


@contextmanager
def _commit_handler(manifest_store: str | None) -> Iterator[CommitHandler | None]:
    if manifest_store is None:
        yield None
        return
    from namespace_server.store.manifests import open_manifest_store

    with closing(open_manifest_store(manifest_store)) as manifests:
        yield ExternalManifestHandler(manifests)


@contextmanager
def _refusing() -> Iterator[None]:
    """End the command with a line on standard error where it cannot do its work, or the environment is wrong."""
    try:
        read_environment(os.environ)
        yield
    except (LanceNamespaceError, LanceCoreError, OSError, ValueError) as error:
        raise _refusal(str(error)) from error


def _storage_options(given: list[str] | None) -> dict[str, str]:
    """Options given on the command line, over those of the environment, where secrets belong."""
    pairs = [item.partition("=") for item in given or ()]
    if wrong := [name for name, equals, _ in pairs if not equals or not name]:
        raise _refusal(f"--storage-option {wrong[0]}: expected NAME=VALUE")
    surroundings: dict[str, str] = read_environment(os.environ).get("storage", {})
    return surroundings | {name: value for name, _, value in pairs}


def _load(config: Path | None, **given: object) -> Settings:
    try:
        return load_settings(config, **given)
    except ValidationError as error:
        raise _refusal(f"settings: {explain(error)}") from error
    except (OSError, SettingsError) as error:
        raise _refusal(f"settings: {error}") from error


def _open(settings: Settings) -> DirectoryNamespace:
    properties: dict[str, Any] = dict(settings.namespace_properties())
    try:
        return DirectoryNamespace(**properties)
    except (LanceNamespaceError, LanceCoreError, OSError, ValueError) as error:
        raise _refusal(f"{settings.root}: {error}") from error


def _refusal(message: str) -> typer.Exit:
    typer.echo(f"lance-namespace: {message}", err=True)
    return typer.Exit(2)
