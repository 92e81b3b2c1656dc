"""The properties of a `DirectoryNamespace`, and the catalog that they describe."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, Literal

from lance_core.commit.handlers import ExternalManifestHandler, ManifestStore
from lance_core.storage.opening import open_store
from lance_core.storage.wrappers.metered import MeteredStore
from namespace_server.credentials.vending import VendingOptions, open_vendor
from namespace_server.directory.catalog import CatalogOptions, StoredCatalog
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.writable import check_root
from namespace_server.observability.observation import SILENT, Observer

_STORAGE = "storage."
_VENDED = "vended."


@dataclass(frozen=True, slots=True)
class CatalogSource:
    """The place of a catalog, and the options with which it is opened.

    Attributes:
        root: A path or URI.
        storage: Options of its object store, by Lance's names.
        durability: Whether a local commit survives a power loss.
        storage_concurrency: How many requests to a bucket may be in flight at once; None: the default of the service.
        manifest_store: URL of a database that decides which commit gets a version, where the store cannot.
        vending: The storage options of clients. Their `sole_writer` is that of `options`.
        options: The options of the catalog.
    """

    root: str
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    durability: Literal["fsync", "none"] = "fsync"
    storage_concurrency: int | None = None
    manifest_store: str | None = field(default=None, repr=False)
    vending: VendingOptions = field(default_factory=VendingOptions)
    options: CatalogOptions = field(default_factory=CatalogOptions)


def open_catalog(source: CatalogSource, observer: Observer = SILENT) -> tuple[StoredCatalog, ManifestStore | None]:
    """The catalog there, and its manifest store, if it has one.

    The `observer` receives all work, and each call of the store. Reads and writes nothing below the root. Raises
    `ValueError`, `StorageError`.
    """
    options, storage = source.options, dict(source.storage)
    vendor = open_vendor(source.root, storage, replace(source.vending, sole_writer=options.sole_writer))
    store = open_store(source.root, storage, durability=source.durability, concurrency=source.storage_concurrency)
    check_root(store)
    if observer is not SILENT:
        store = MeteredStore(store, observer.storage_calls)
    if not source.manifest_store:
        return StoredCatalog(store, options, vendor, observer), None
    from namespace_server.store.manifests import open_manifest_store  # SQLAlchemy is loaded only where it is used

    manifests = open_manifest_store(source.manifest_store)
    return StoredCatalog(ExternalManifestHandler(manifests).over(store), options, vendor, observer), manifests


def read_properties(properties: Mapping[str, str]) -> CatalogSource:
    """The catalog that the properties of a namespace describe. Raises `ValueError`."""
    settings = {key: str(value) for key, value in properties.items()}
    root = settings.pop("root", None)
    if not root:
        raise ValueError("property 'root' is required: the directory or bucket of the catalog")
    storage = storage_options(settings)
    for name in storage:
        del settings[_STORAGE + name]
    vending = _vending(settings)
    durability = settings.pop("durability", "fsync")
    if durability not in {"fsync", "none"}:
        raise ValueError(f"durability: expected fsync or none, found {durability!r}")
    url = settings.pop("manifest_store", None)
    concurrency = _read({name: settings.pop(name) for name in _STORE if name in settings}, _STORE)
    return CatalogSource(
        root,
        storage,
        "fsync" if durability == "fsync" else "none",
        manifest_store=url,
        vending=vending,
        options=_options(settings),
        **concurrency,
    )


def storage_options(properties: Mapping[str, str]) -> dict[str, str]:
    """The options of the object store among the properties of a namespace, by Lance's names."""
    return {name.removeprefix(_STORAGE): str(value) for name, value in properties.items() if name.startswith(_STORAGE)}


def _vending(settings: dict[str, str]) -> VendingOptions:
    """The maker of storage options for clients, by their properties, which are taken out. Raises `ValueError`."""
    static = {name.removeprefix(_VENDED): settings.pop(name) for name in list(settings) if name.startswith(_VENDED)}
    given = {name: settings.pop(name) for name in _VENDING if name in settings}
    return replace(VendingOptions(static=static), **_read(given, _VENDING))


def _options(settings: dict[str, str]) -> CatalogOptions:
    unknown = settings.keys() - _OPTIONS.keys()
    if unknown:
        raise ValueError(
            f"unknown properties {', '.join(sorted(unknown))}; known: root, durability, storage.*, "
            f"manifest_store, vended.*, {', '.join((*_STORE, *_VENDING, *_OPTIONS))}"
        )
    given = _read(settings, _OPTIONS)
    limits = {name.removeprefix("limits."): given.pop(name) for name in list(given) if name.startswith("limits.")}
    return replace(CatalogOptions(), limits=replace(Limits(), **limits), **given)


def _read(settings: Mapping[str, str], known: Mapping[str, tuple[str, Callable[[str], Any]]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in settings.items():
        option, read = known[name]
        try:
            given[option] = read(value)
        except ValueError as error:
            raise ValueError(f"property {name}: {error}") from error
    return given


def _seconds(value: str) -> timedelta:
    return timedelta(seconds=float(value))


def _prefixes(value: str) -> tuple[str, ...]:
    given = json.loads(value) if value.lstrip().startswith("[") else value.split(",")
    if not all(isinstance(prefix, str) for prefix in given):
        raise ValueError(f"expected strings, found {value!r}")
    return tuple(prefix.strip() for prefix in given if prefix.strip())


def _boolean(value: str) -> bool:
    if value.lower() not in {"true", "false"}:
        raise ValueError(f"expected true or false, found {value!r}")
    return value.lower() == "true"


_STORE: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {"storage_concurrency": ("storage_concurrency", int)}
"""Properties of `DirectoryNamespace` that are about requests to its store, and how their texts are read."""

_VENDING: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "vended_role_arn": ("role_arn", str),
    "vended_sts_endpoint": ("sts_endpoint", str),
    "vended_azure_sas": ("azure_sas", _boolean),
    "vended_google_token": ("google_token", _boolean),
    "vended_permission": ("permission", str),
    "vended_seconds": ("duration", _seconds),
}
"""Properties of `DirectoryNamespace` that are `VendingOptions`: the option and how its text is read."""

_OPTIONS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "sweep_interval_seconds": ("sweep_interval", _seconds),
    "stage_max_age_seconds": ("stage_max_age", _seconds),
    "record_retention_seconds": ("record_retention", _seconds),
    "commit_tries": ("tries", int),
    "group_limit": ("group_limit", int),
    "allowed_locations": ("allowed_locations", _prefixes),
    "blob_locations": ("blob_locations", _prefixes),
    "implicit_namespaces": ("implicit_namespaces", _boolean),
    "verify_data_files": ("verify_data_files", _boolean),
    "fenced": ("sole_writer", _boolean),
    "max_operations": ("limits.operations", int),
}
"""Properties of `DirectoryNamespace` that are options of its catalog: the option and how its text is read."""
