"""The commands `serve` and `adopt`. Imported by them alone: the server takes a second to import."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import typer
from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from lance_core.amounts import counted
from lance_core.errors import LanceCoreError
from lance_core.hidden_credentials import without_credentials
from namespace_server.app import Application, create_app
from namespace_server.background.gc import GarbageCollection
from namespace_server.background.maintenance import TableMaintenance
from namespace_server.background.name_search import NameSearch
from namespace_server.background.scheduler import BackgroundJob
from namespace_server.cli.agents import mount_agents
from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.cli.configuration import load
from namespace_server.cli.options import audit_directory
from namespace_server.cli.progress import ProgressLine
from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.directory.manifest_table.peers import NO_URL, Peer
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.interruption import raise_interrupts
from namespace_server.observability.access_log import AccessLog
from namespace_server.observability.audit.files import LineFiles
from namespace_server.observability.audit.log import Descriptor, RefusedAttemptLog
from namespace_server.observability.audit.reading import DirectoryReader
from namespace_server.observability.logs import configure_logs
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.observability.metrics.scrapes import ScrapeListener
from namespace_server.observability.observation import SILENT, Observer
from namespace_server.process import switch_often, tune_process
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.middleware import HostGuard, host_name, local_hosts
from namespace_server.serving import Server
from namespace_server.settings import Settings

if TYPE_CHECKING:
    from namespace_server.observability.tracing import Tracing
    from namespace_server.rest.forwarding import Forwarding

_log = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def serve(config: Path | None, **given: object) -> None:
    """Serve the catalog that the settings describe until a signal ends the process."""
    settings = load(config, **given)
    configure_logs(settings.log_level, settings.log_format)
    if settings.exposed:
        raise refusal(
            f"refused to listen on {settings.host}: any client that reaches it could change the catalog. Configure API "
            "keys ([api_keys] in the settings file, LANCE_NAMESPACE_API_KEYS or LANCE_NAMESPACE_API_KEYS_FILE) or "
            "issuers of tokens ([[token_issuers]], LANCE_NAMESPACE_TOKEN_ISSUERS), "
            "listen on 127.0.0.1, or say --insecure."
        )
    authenticator = _authenticator(settings)
    hosts, near = _hosts(settings)
    _warn_of_openness(settings, authenticator)
    tune_process()
    metrics = ServerMetrics() if settings.metrics else None
    tracing = _tracing(metrics or SILENT)
    observer = tracing or metrics or SILENT
    namespace = _open(settings, observer)
    if namespace.local:
        _require_callers(settings, authenticator, namespace)
        if not settings.read_only_switch.is_on():
            _require_writable(namespace)
        switch_often()
    app = create_app(
        namespace,
        authenticator,
        limits=settings.limits,
        hosts=hosts,
        near=near,
        proxies=settings.trusted_proxies,
        origins=settings.allowed_origins,
        access_log=_access_log(settings),
        metrics=metrics,
        forwarding=_forwarding(settings, namespace, observer),
        read_only=settings.read_only_switch,
        tracing=tracing,
        attempts=_attempts(settings, namespace),
        auditors=settings.audit_readers,
        root_database=settings.root_database,
    )
    _mount(app, settings)
    for job in _jobs(settings, namespace, app, observer):
        app.run_in_background(job)
    _log.info("serving %s", without_credentials(settings.root))
    try:
        server = Server(app, settings.serving)
    except ValueError as error:
        raise refusal(f"settings: {error}") from error
    except OSError as error:
        raise _taken(settings.host, settings.port, error) from error
    scrapes = _scrapes(settings, metrics)
    threading.Thread(target=_check_usable, args=(namespace, authenticator), name="first-look", daemon=True).start()
    signal.signal(signal.SIGHUP, lambda *_: authenticator.reload_soon())
    authenticator.start()
    try:
        server.run(lambda: _print(f"listening on {server.url}"))
    finally:
        scrapes.close()
        if tracing is not None:
            tracing.close()
        authenticator.stop()


def adopt(config: Path | None, *, strict: bool, **given: object) -> None:
    """Take over the catalog that the settings describe, and print the tables that were taken over."""
    settings = load(config, **given)
    configure_logs(settings.log_level, settings.log_format)
    namespace = _open(settings)
    try:
        raise_interrupts()
        with ProgressLine() as progress:
            adopted = namespace.adopt(strict=strict, progress=progress)
    except (LanceNamespaceError, LanceCoreError) as error:
        raise refusal(str(error)) from error
    finally:
        namespace.close()
    for table_id, versions in adopted.tables:
        typer.echo(f"{'$'.join(table_id)}: {counted(versions, 'version')}")
    for table in adopted.unlisted:
        typer.echo(
            f"{table.location}: no row of the catalog; take it in with: lance-namespace register NAME {table.location}"
        )
    state = "was managed already" if adopted.already_managed else f"adopted, {counted(len(adopted.tables), 'table')}"
    typer.echo(f"{settings.root}: {state}, catalog version {adopted.catalog_version}")


def _mount(app: Application, settings: Settings) -> None:
    """Serve what people and agents use beside the API: what is installed, unless the settings say otherwise."""
    if settings.console is not False:
        try:
            from namespace_console.application import Console  # with the templates, which few servers need
        except ModuleNotFoundError as error:
            if settings.console:
                raise refusal(f"console: {error.name} is missing; install lance-namespace-server[console]") from error
        else:
            app.mount("console", Console())
    mount_agents(app, settings)


def _access_log(settings: Settings) -> AccessLog | None:
    is_wanted = settings.access_log and settings.log_level in {"debug", "info"}
    return AccessLog(settings.log_format) if is_wanted else None


def _require_callers(settings: Settings, authenticator: Authenticator, namespace: DirectoryNamespace) -> None:
    """Refuse to serve a catalog with grants if no caller has a name: all would have what `everyone` has, and no more.

    A catalog that cannot be read now is judged by when it can be.
    """
    if authenticator.required:
        return
    policy = None
    with suppress(LanceNamespaceError, LanceCoreError):
        policy = namespace.newest().policy
    if policy is not None:
        namespace.close()
        raise refusal(
            f"refused to serve {without_credentials(settings.root)}: grants are in force in its catalog, and without "
            "keys no caller has a name. Configure API keys ([api_keys] in the settings file, LANCE_NAMESPACE_API_KEYS "
            "or LANCE_NAMESPACE_API_KEYS_FILE) or issuers of tokens ([[token_issuers]], LANCE_NAMESPACE_TOKEN_ISSUERS)."
        )


def _attempts(settings: Settings, namespace: DirectoryNamespace) -> RefusedAttemptLog | None:
    """The log of refused attempts, as `audit_log` says. A directory that it names is made now, or the command ends."""
    place, process = settings.audit_log, secrets.token_hex(4)
    if place == "off":
        return None
    directory = audit_directory(namespace.catalog.store.uri) if place is None else Path(place)
    if place == "stdout" or directory is None:
        if sys.stdout is None:
            raise refusal("audit_log: expected an open standard output")
        return RefusedAttemptLog(Descriptor(sys.stdout.fileno()), None, process)
    files = LineFiles(directory, process, timedelta(days=settings.audit_days), settings.max_audit_bytes)
    if place is not None:
        try:
            files.make()
        except OSError as error:
            raise refusal(f"audit_log: {directory}: {error.strerror or error}") from error
    return RefusedAttemptLog(files, DirectoryReader(directory), process)


def _taken(host: str, port: int, error: OSError) -> typer.Exit:
    """The end of the command when it cannot listen."""
    return refusal(f"{host}:{port}: {error.strerror or error}", ExitStatus.UNAVAILABLE)


def _tracing(observer: Observer) -> Tracing | None:
    """Tracing, if the environment names where spans are to be sent."""
    if not any(map(os.environ.get, _ENDPOINTS)):
        return None
    try:
        from namespace_server.observability.tracing import open_tracing  # with the SDK, which few servers need
    except ImportError as error:
        raise refusal(f"{_ENDPOINTS[0]}: {error.name} is missing; install lance-namespace-server[otel]") from error
    return open_tracing(observer)


def _scrapes(settings: Settings, metrics: ServerMetrics | None) -> ExitStack:
    """The listener for metrics on a port of its own, if there is to be one, until the stack is closed."""
    stack = ExitStack()
    if settings.metrics_port is not None and metrics is not None:
        local = local_hosts(settings.metrics_host)
        guard = HostGuard((*local, *settings.allowed_hosts), (), near=not local)
        try:
            listener = ScrapeListener(
                settings.metrics_host,
                settings.metrics_port,
                metrics.registry,
                lambda host: guard.allows(host_name(host.encode("latin-1"))),
            )
        except OSError as error:
            raise _taken(settings.metrics_host, settings.metrics_port, error) from error
        stack.callback(listener.close)
    return stack


def _jobs(
    settings: Settings, namespace: DirectoryNamespace, app: Application, observer: Observer
) -> Iterator[BackgroundJob]:
    """The background jobs of a server, beside the recovery of its catalog."""
    catalog, paused = namespace.catalog, settings.read_only_switch.is_on
    if settings.gc_interval:
        yield GarbageCollection(
            catalog.store,
            settings.gc_interval,
            (settings.root, "--durability", settings.durability),
            settings.collection_environment(),
            observer=observer,
            paused=paused,
        )
    if settings.maintenance_interval:
        yield TableMaintenance(
            catalog.store, catalog.table, app.change, settings.maintenance_interval, settings.maintenance, paused
        )
    if app.has_mounted("console"):
        yield NameSearch(catalog.table)


def _forwarding(settings: Settings, namespace: DirectoryNamespace, observer: Observer) -> Forwarding | None:
    """The forwarding of changes to other servers; flips name this one from now on. None: the servers take turns."""
    peers, instance = namespace.catalog.table.peers, secrets.token_hex(8)
    if settings.peer_secret is None:
        peers.join(Peer(instance), None)
        return None
    from namespace_server.rest.forwarding import Forwarding  # with the HTTP client, which few servers need

    try:
        tls = settings.peer_tls()
    except OSError as error:  # ssl.SSLError too
        raise refusal(f"settings: certificates of peers: {error}") from error
    this = Peer(instance, settings.reachable_url or NO_URL)
    if this.url == NO_URL:
        _log.warning(
            "peer_url: none is set or follows from host and port: other servers can hand no changes to this one"
        )
    return Forwarding(this, PeerSecret(settings.peer_secret.get_secret_value()), peers, tls, observer)


def _hosts(settings: Settings) -> tuple[frozenset[str], bool]:
    """The names that requests may address the server by, and whether names that are near are allowed too.

    No names, and none near: any. Other servers of the root use the host of this one's own URL. Without keys only names
    of this machine, and beyond it those that no page of another site has: it could reach the server under a name of
    its own (DNS rebinding).
    """
    if settings.allowed_hosts or settings.guarded:
        own = (
            urlsplit(settings.reachable_url or "").hostname if settings.allowed_hosts and settings.peer_secret else None
        )
        return frozenset((*settings.allowed_hosts, *filter(None, [own]))), False
    local = local_hosts(settings.host)
    return local or frozenset({"localhost", settings.host.lower()}), not local


def _warn_of_openness(settings: Settings, authenticator: Authenticator) -> None:
    authenticator.warn()
    if not authenticator.required and not local_hosts(settings.host):
        _log.warning(
            "insecure: any client that reaches %s:%d may read and change the catalog: no API keys are configured",
            settings.host,
            settings.port,
        )


def _print(text: str) -> None:
    """Write a line to standard output. The server goes on where that cannot be written."""
    try:
        typer.echo(text)
    except OSError as error:
        _log.warning("standard output: %s; it would have said: %s", error.strerror or error, text)
        with suppress(OSError, ValueError):  # what is in its buffer would fail once more at the end
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


def _authenticator(settings: Settings) -> Authenticator:
    try:
        return settings.authenticator
    except ModuleNotFoundError as error:
        raise refusal(f"token_issuers: {error.name} is missing; install lance-namespace-server[oidc]") from error
    except (ValueError, OSError) as error:
        raise refusal(f"settings: {error}") from error


def _require_writable(namespace: DirectoryNamespace) -> None:
    """End the command if the directory cannot be written. A full disk is no reason: the catalog can be read."""
    try:
        namespace.check_writable()
    except ServiceUnavailableError as error:
        cause = error.__cause__
        while cause is not None:
            if isinstance(cause, OSError) and cause.errno in _FULL:
                return
            cause = cause.__cause__
        raise refusal(str(error)) from error


def _check_usable(namespace: DirectoryNamespace, authenticator: Authenticator) -> None:
    """Log why requests will fail if the catalog cannot be read or written. The server goes on: it may be later.

    Runs in a thread of its own: a store that does not answer must not delay the start.
    """
    try:
        snapshot = namespace.newest()
        if not snapshot.managed and not snapshot.is_empty_root:
            _log.warning(
                "served for reading: the root has tables, and no catalog that keeps their versions; changes are "
                "refused until `lance-namespace adopt --root %s` has taken them over",
                namespace.catalog.store.uri,
            )
        if snapshot.policy is not None and not authenticator.required:
            _log.critical("grants are in force, and without keys or issuers no caller has a name: all are refused")
        if not namespace.local:
            namespace.check_writable()
    except ServiceUnavailableError as error:
        _log.critical("requests are answered with errors until this is mended: %s", error)
    except (LanceNamespaceError, LanceCoreError) as error:
        _log.critical("the catalog cannot be read, requests are answered with errors until it can: %s", error)


def _open(settings: Settings, observer: Observer = SILENT) -> DirectoryNamespace:
    try:
        return DirectoryNamespace(catalog=settings.catalog, observer=observer)
    except (LanceNamespaceError, LanceCoreError, OSError, ValueError) as error:
        text = str(error)
        root = without_credentials(settings.root)
        raise refusal(text if root in text else f"{root}: {text}") from error
