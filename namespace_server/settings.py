"""The server's settings: from the command line, the environment and a file, in this order of precedence."""

from __future__ import annotations

import json
import os
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    FilePath,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from namespace_server.credentials.vending import LONGEST, ROLE, SHORTEST, VendingOptions
from namespace_server.directory.catalog import CatalogOptions
from namespace_server.directory.maintenance.policy import read_policy
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.properties import CatalogSource
from namespace_server.read_only import ReadOnlySwitch
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.middleware import local_hosts
from namespace_server.rest.own_address import url_of
from namespace_server.rest.principals import TokenIssuer, check_issuers
from namespace_server.rest.request.limits import DataLimits, RequestLimits
from namespace_server.serving import ServingOptions
from namespace_server.setting_sources import PREFIX, EnvironmentSource, FileSource, read_environment, suggestion
from namespace_server.setting_types import (
    Host,
    Items,
    Location,
    Network,
    Origin,
    Positive,
    Principal,
    Seconds,
    Secret,
    SharedSecret,
    Url,
    check_keys,
    matching,
    parse_list,
    plain_keys,
)
from namespace_server.workers.process_pool import RELIEF, part_of_one


class Settings(BaseSettings):
    """Every setting `x` can come from the environment as `LANCE_NAMESPACE_X`: maps as a JSON object, lists as a JSON
    array or as items between commas, options of the object store also one by one as `LANCE_NAMESPACE_STORAGE__REGION`.
    Unknown names in the file and in the environment are errors. No error shows a key or a value of a secret.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=False
    )

    root: str = Field(min_length=1, description="Directory or URI of the catalog.")
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address to listen on. Any address but loopback needs API keys, issuers of tokens or `insecure`.",
    )
    port: int = Field(default=2333, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    durability: Literal["fsync", "none"] = Field(
        default="fsync",
        description="`fsync`: a commit is on the disk before it is answered (local roots). `none`: a power failure "
        "can lose it, the end of the process cannot.",
    )
    storage: dict[str, str] = Field(default_factory=dict, description="Options of the object store, by Lance's names.")
    storage_concurrency: int | None = Field(
        default=None,
        gt=0,
        le=4_096,
        description="Requests to a bucket that may be in flight at once; absent: 256 on S3, 32 on Azure and Google.",
    )
    manifest_store: Secret | None = Field(
        default=None,
        description="Database that decides commits where the object store cannot: `sqlite:///file` or "
        "`postgresql+psycopg://user@host/database`.",
    )
    vended_storage: dict[str, str] = Field(
        default_factory=dict,
        description="Options of the object store that clients are handed with every table, by Lance's names. Every "
        "client sees them.",
    )
    vended_role_arn: Annotated[str, matching(ROLE.pattern, "arn:aws:iam::ACCOUNT:role/NAME")] | None = Field(
        default=None,
        description="Role that the server assumes for clients of a root on S3. They are handed temporary credentials "
        "that are limited to the table.",
    )
    vended_azure_sas: bool = Field(
        default=False,
        description="Whether clients of a root on Azure are handed shared access signatures that are limited to the "
        "directory of the table. The account must have a hierarchical namespace. They are signed with its key, or with "
        "one that is delegated to the server's identity.",
    )
    vended_google_token: bool = Field(
        default=False,
        description="Whether clients of a root on Google Cloud Storage are handed access tokens of the server's "
        "account that are limited to the table. The bucket must have uniform access.",
    )
    vended_sts_endpoint: str | None = Field(
        default=None,
        min_length=1,
        description="URL of the token service for `vended_role_arn` and `vended_google_token`; absent: that of AWS in "
        "the region, or Google's.",
    )
    vended_permission: Literal["read", "write"] = Field(
        default="write", description="What temporary credentials of clients allow in the directory of the table."
    )
    vended_seconds: int = Field(
        default=3600,
        ge=int(SHORTEST.total_seconds()),
        le=int(LONGEST.total_seconds()),
        description="Seconds for which temporary credentials of clients are valid. A client is handed some that are "
        "valid for half of them at least. How long tokens of Google are valid does not depend on it: an hour at most.",
    )
    allowed_locations: Annotated[list[Location], Items] = Field(
        default_factory=list,
        description="Prefixes outside the root that tables may use: absolute paths or URIs.",
    )
    blob_locations: Annotated[list[Location], Items] = Field(
        default_factory=list,
        description="Prefixes of files that values of blob columns may be, by a URI or below a base path: absolute "
        "paths or URIs. The server reads such a file with its own credentials for everyone who reads the table.",
    )
    implicit_namespaces: bool = Field(
        default=False, description="Whether a table may be created in a namespace that does not exist yet."
    )
    root_database: Annotated[str, matching(r"[^$/]+", "a name without $ and /")] | None = Field(
        default=None,
        description="The database of lancedb's clients (`db://NAME`) that is the root of the catalog, for one whose "
        "tables are there. Absent: each database is the namespace of its name.",
    )

    verify_data_files: bool = Field(
        default=False,
        description="Whether rows, columns and format that a transaction states are compared with its data files in a "
        "bucket too, which takes two requests per file and a round trip more. On a local root they always are; sizes "
        "are compared everywhere.",
    )

    fenced: bool = Field(
        default=False,
        description="Whether the store takes manifests of table versions (`*/_versions/*.manifest`) from the servers "
        "of this root alone. What others committed above the head of a table is then not looked for, which saves a "
        "request for each table of a batch, and for each read of a head.",
    )

    api_keys: Annotated[dict[SecretStr, str], BeforeValidator(check_keys)] = Field(
        default_factory=dict,
        description="Principals by API key. A key is at least 8 printable characters, or `sha256:` and the hex "
        "digest of them; a principal is 1 to 255 printable characters.",
    )
    api_keys_file: FilePath | None = Field(
        default=None,
        description="File with more API keys, read again when it changes and on SIGHUP: TOML, or JSON if its name "
        "ends in `.json`.",
    )
    max_wrong_keys: int = Field(
        default=60,
        ge=0,
        le=1_000_000,
        description="Wrong API keys and tokens of one client address that are looked at in a minute. After that "
        "its keys are refused with 429 and `Retry-After`, but for those that were right from there before. 0: any "
        "number.",
    )
    trusted_proxies: Annotated[list[Network], Items] = Field(
        default_factory=list,
        description="Addresses and networks of proxies whose `X-Forwarded-For` or `Forwarded` has the address of the "
        "client, for the log and for `max_wrong_keys`.",
    )
    token_issuers: Annotated[list[TokenIssuer], BeforeValidator(parse_list)] = Field(
        default_factory=list,
        description="Issuers of OpenID Connect whose bearer tokens are accepted beside API keys; see "
        "[Tokens](../guide/tokens.md). Each has `issuer` (its URL) and `audience` (a text, or a list of which a token "
        "must be for one). It may have `algorithms` (`RS256` and `ES256`; also `RS384`, `RS512`, `PS256`, `PS384`, "
        "`PS512`, `ES384`, `ES512`), `principal_claim` (`sub`), `principal_prefix` (the issuer and `#`), `roles_claim` "
        "(a claim, or a list that is the path to one; none), `role_prefix` (put before its roles; none), `clock_skew` "
        "(60 seconds, at most 600), and `ca` (PEM file of the authorities that sign its certificate; those of the "
        "system).",
    )
    insecure: bool = Field(
        default=False, description="Listen beyond loopback without API keys and without issuers of tokens."
    )
    allowed_hosts: Annotated[list[Host], Items] = Field(
        default_factory=list,
        description="Values of the `Host` header that are served. Empty: any if requests need a key or a token, names "
        "of the local machine if not; beyond loopback (`insecure`) also IP addresses and names without a dot. "
        "`metrics_port` serves these, and the same as without API keys.",
    )
    allowed_origins: Annotated[list[Origin], Items] = Field(
        default_factory=list,
        description="Origins of web pages whose scripts may call the server (CORS).",
    )
    tls_certificate: FilePath | None = Field(
        default=None, description="PEM file with the server's certificate chain; the server then speaks TLS only."
    )
    tls_key: FilePath | None = Field(default=None, description="PEM file with the private key of the certificate.")
    tls_key_password: Secret | None = Field(default=None, description="Password of `tls_key`, if it has one.")
    tls_client_ca: FilePath | None = Field(
        default=None,
        description="PEM file with the authorities whose client certificates are accepted; clients must then show one.",
    )

    read_only: bool = Field(default=False, description="Whether changes are refused with 503 and `Retry-After`.")
    read_only_file: Path | None = Field(
        default=None,
        description="A path at which the operator makes a file to have changes refused while it is there, as by "
        "`read_only`, and removes it to have them accepted again; without a restart.",
    )

    metrics: bool = Field(default=True, description="Whether the server measures itself, and serves `/metrics`.")
    metrics_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="Port on which `/metrics` is also served without a key and without TLS, at `metrics_host`; absent: "
        "on `port` alone, where it needs a key if others do.",
    )
    metrics_host: str = Field(default="127.0.0.1", min_length=1, description="Address of `metrics_port`.")
    peer_secret: SharedSecret | None = Field(
        default=None,
        description="What all servers of the root share, of at least 16 characters. With it they find each other in "
        "the catalog, and the changes of all are committed by one of them, which is faster than by all. Absent: they "
        "take turns.",
    )
    peer_url: Url | None = Field(
        default=None,
        description="URL at which the other servers of the root reach this one; absent: by `host` and `port`, and with "
        "TLS none. Changes are handed there with the credentials of their clients. All servers must know the same API "
        "keys and issuers.",
    )
    peer_ca: FilePath | None = Field(
        default=None,
        description="PEM file with the authorities that sign the certificates of the other servers of the root; "
        "absent: those of the system.",
    )

    max_body_bytes: Positive = Field(default=64 << 20, description="Most bytes of the body of a change.")
    max_operations: Positive = Field(default=Limits().operations, description="Most operations of one batch.")
    max_connections: int = Field(
        default=1024,
        gt=0,
        le=1_000_000,
        description="Most connections that are open at once; fewer if the process may not open so many files.",
    )
    queue_capacity: Positive = Field(
        default=4096, description="Most changes accepted and not yet answered; further ones are answered 503."
    )
    max_event_streams: int = Field(
        default=RequestLimits().event_streams,
        gt=0,
        le=1_000_000,
        description="Most streams of events, and long polls for events, that are open at once; further ones are "
        "answered 429. Each has a connection.",
    )
    max_requests_per_principal: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Most requests of one principal that are under way at one time, streams of events among them; "
        "further ones are answered 429 with `Retry-After`. 0: any number; `max_connections` bounds them. Requests "
        "without a key are of one principal, here and below.",
    )
    max_changes_per_principal: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Most changes of the catalog of one principal that wait for their commit; further ones are "
        "answered 429 with `Retry-After`, before their body is read. 0: three quarters of `queue_capacity`, and any "
        "number without a key.",
    )
    max_upload_bytes_per_principal: int = Field(
        default=0,
        ge=0,
        description="Most bytes of the bodies that one principal sends at one time, with rows that wait for a process "
        "or are worked on; bodies of up to 64 KiB of JSON do not count. Further ones are answered 429 with "
        "`Retry-After`, before they are read if they state their length, and one that is longer by itself 413. 0: "
        "three quarters of `max_spool_bytes`, or `max_rows_bytes` if that is more, and any number without a key.",
    )
    change_workers: int = Field(
        default=DataLimits().change_workers,
        gt=0,
        le=1000,
        description="Processes that change rows, and so the changes of rows that are done at one time. Up to four "
        "more do others while all of these are busy for longer than 50 ms.",
    )
    read_workers: int = Field(
        default=DataLimits().read_workers,
        gt=0,
        le=1000,
        description="Processes that read rows, and so the queries that are answered at one time. Up to four more "
        "answer others while all of these are busy for longer than 50 ms.",
    )
    preload_workers: bool = Field(
        default=True,
        description="Whether what these processes need is loaded when the server starts, in a process of its own. "
        "That takes a second of processor time and about 80 MB of memory. Otherwise it is loaded when the first of "
        "them is needed, and that operation waits for it.",
    )
    max_waiting_work: int = Field(
        default=DataLimits().waiting,
        ge=0,
        description="Most changes of rows, and most reads of rows, that wait for a process; further ones are answered "
        "429.",
    )
    max_rows_bytes: Positive = Field(default=DataLimits().body, description="Most bytes of rows in a request.")
    worker_memory_bytes: int = Field(
        default=DataLimits().worker_memory,
        ge=0,
        description="Most bytes of memory that a process may take for one operation on rows; one that needs more is "
        "answered 400. 0: three quarters of the machine's memory, divided by the number of processes that may run at "
        "one time, and at least 1 GiB.",
    )
    work_timeout: Seconds = Field(
        default=DataLimits().work_timeout,
        description="Seconds that a process may take for one change of rows, after which it is ended and the request "
        "answered 503.",
    )
    query_timeout: Seconds = Field(
        default=DataLimits().query_timeout,
        description="Seconds in which a read must have its first rows or its value, and after them the next rows; else "
        "its process is ended, and the request answered 503 or its answer broken off.",
    )
    max_workers_per_principal: int = Field(
        default=DataLimits().worker_share,
        ge=0,
        le=1000,
        description="Most of the processes that change rows, and of those that read rows, that the operations of one "
        "principal hold at one time; its others wait. 0: two thirds of those that there may be. Requests without a key "
        "are of no principal, and not bounded.",
    )
    body_timeout: Seconds = Field(
        default=60.0,
        description="Seconds in which the body of a request must arrive. One of rows has a second more for each "
        "16 KiB of it, if no two pieces are further apart.",
    )
    max_spool_bytes: int = Field(
        default=DataLimits().spool,
        ge=0,
        description="Most bytes of rows that wait in temporary files: of requests that are not complete, and of "
        "answers that their clients read slowly. Further requests are answered 429. The files have no names, and are "
        "in the directory that the variable `TMPDIR` names, else in the system's for such files.",
    )
    idle_timeout: Seconds = Field(
        default=120.0,
        description="Seconds from the end of a request, or the opening of a connection, in which the head of the next "
        "request must arrive. Stock clients keep idle connections for 90.",
    )
    shutdown_timeout: Seconds = Field(
        default=30.0, description="Seconds that requests in progress are given when the server ends."
    )

    gc_interval: int = Field(
        default=6 * 3_600,
        ge=0,
        le=31 * 86_400,
        description="Seconds between two garbage collections, which delete what no kept version of the catalog needs, "
        "in a process of one of the servers on the root. 0: none.",
    )
    maintenance_interval: int = Field(
        default=0,
        ge=0,
        le=31 * 86_400,
        description="Seconds between two runs of maintenance, which compact the tables that are worth it and extend "
        "their indices, in one of the servers on the root. 0: none.",
    )
    maintenance: dict[str, str] = Field(
        default_factory=dict,
        description="Properties `maintenance.*` of tables that do not have them, and whose namespaces do not.",
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level of messages that are logged."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Form of the log on standard error: lines of text, or of JSON."
    )
    console: bool | None = Field(
        default=None,
        description="Whether people see the catalog in a browser, at `/console`. Absent: if the extra `console` is "
        "installed.",
    )
    mcp: Literal["off", "read", "write"] = Field(
        default="read",
        description="[Tools for agents](../guide/agents.md) at `/mcp`, if the extra `mcp` is installed: those that "
        "read, also those that change the catalog (`write`), or none. Grants hold for them as for any client.",
    )
    access_log: bool = Field(default=True, description="Whether each request is logged.")

    audit_log: str | None = Field(
        default=None,
        min_length=1,
        description="Where refused attempts are recorded: a directory, `stdout` for a collector of logs, or "
        "`off`; see [Audit](../guide/audit.md). Absent: in the directory `_audit` of a root in a directory, and on "
        "standard output for a root in a bucket.",
    )
    audit_days: int = Field(
        default=90,
        ge=1,
        le=36_500,
        description="Days for which lines in the directory of `audit_log` are kept. Then their file is removed.",
    )
    max_audit_bytes: Positive = Field(
        default=1 << 30,
        description="Most bytes of the files in the directory of `audit_log`. Beyond it lines wait until older files "
        "are removed, and are dropped and counted when too many wait.",
    )
    audit_readers: Annotated[list[Principal], Items] = Field(
        default_factory=list,
        description="Principals who may read over HTTP who did what from where, and what was refused.",
    )

    @field_validator("allowed_hosts")
    @classmethod
    def _ignore_case(cls, hosts: list[str]) -> list[str]:
        return [host.lower() for host in hosts]

    @field_validator("token_issuers")
    @classmethod
    def _check_issuers(cls, issuers: list[TokenIssuer]) -> list[TokenIssuer]:
        check_issuers(issuers)
        return issuers

    @field_validator("maintenance")
    @classmethod
    def _check_policy(cls, properties: dict[str, str]) -> dict[str, str]:
        read_policy(properties)
        return properties

    @model_validator(mode="after")
    def _check_metrics(self) -> Self:
        if self.metrics_port is not None and not self.metrics:
            raise ValueError("metrics_port: expected metrics with it")
        return self

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate, tls_key: expected both or none")
        if self.tls_certificate is None and (self.tls_key_password or self.tls_client_ca):
            raise ValueError("tls_key_password, tls_client_ca: expected tls_certificate and tls_key with them")
        return self

    @model_validator(mode="after")
    def _check_peers(self) -> Self:
        if self.peer_secret is None and (self.peer_url is not None or self.peer_ca is not None):
            raise ValueError("peer_url, peer_ca: expected peer_secret with them")
        return self

    @property
    def authenticator(self) -> Authenticator:
        """A new authenticator of `api_keys`, `api_keys_file` and `token_issuers`.

        Raises what `Authenticator` and `AccessTokens` raise; `ModuleNotFoundError` where the library for tokens is not
        installed.
        """
        tokens = None
        if self.token_issuers:
            from namespace_server.rest.access_tokens import AccessTokens  # with joserfc, an extra

            tokens = AccessTokens(self.token_issuers)
        return Authenticator(plain_keys(self.api_keys), self.api_keys_file, self.max_wrong_keys, tokens)

    @property
    def guarded(self) -> bool:
        """Whether requests need a key or a token."""
        return bool(self.api_keys or self.api_keys_file or self.token_issuers)

    @property
    def read_only_switch(self) -> ReadOnlySwitch:
        """When changes are refused."""
        return ReadOnlySwitch(self.read_only, self.read_only_file)

    @property
    def exposed(self) -> bool:
        """Whether a client on another machine could reach the server and change the catalog without a key."""
        return not (self.insecure or self.guarded or local_hosts(self.host))

    @property
    def limits(self) -> RequestLimits:
        """The bounds of requests."""
        return RequestLimits(
            body=self.max_body_bytes,
            buffered_bodies=4 * self.max_body_bytes,
            operations=self.max_operations,
            body_timeout=self.body_timeout,
            queue_capacity=self.queue_capacity,
            event_streams=self.max_event_streams,
            principal_requests=self.max_requests_per_principal,
            principal_changes=self.max_changes_per_principal
            or (part_of_one(self.queue_capacity) if self.guarded else 0),
            principal_upload=self.max_upload_bytes_per_principal
            or (max(part_of_one(self.max_spool_bytes), self.max_rows_bytes) if self.guarded else 0),
            data=DataLimits(
                change_workers=self.change_workers,
                read_workers=self.read_workers,
                preload=self.preload_workers,
                waiting=self.max_waiting_work,
                body=self.max_rows_bytes,
                chunk_timeout=self.body_timeout,
                work_timeout=self.work_timeout,
                query_timeout=self.query_timeout,
                worker_share=self.max_workers_per_principal,
                spool=self.max_spool_bytes,
                worker_memory=self.worker_memory_bytes or self._share_of_memory(),
            ),
        )

    def _share_of_memory(self) -> int:
        """The memory of one worker, if all that may run at one time take as much."""
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return max(1 << 30, machine * 3 // 4 // (self.change_workers + self.read_workers + 2 * RELIEF))

    @model_validator(mode="after")
    def _check_auditors(self) -> Self:
        if self.audit_readers and not self.guarded:
            raise ValueError("audit_readers: expected API keys or issuers of tokens with them: others have no names")
        return self

    @property
    def reachable_url(self) -> str | None:
        """The URL at which other servers reach this one: `peer_url`, else by `host` and `port`; None without either."""
        if self.peer_url is not None:
            return self.peer_url
        return None if self.tls_certificate is not None or not self.port else url_of(self.host, self.port)

    def peer_tls(self) -> ssl.SSLContext:
        """How servers on the same root are trusted, and this one's certificate for those that ask for one.

        Raises `OSError` for a file that cannot be used.
        """
        context = ssl.create_default_context(cafile=self.peer_ca)
        if self.tls_certificate is not None and self.tls_key is not None:
            password = None if self.tls_key_password is None else self.tls_key_password.get_secret_value()
            context.load_cert_chain(self.tls_certificate, self.tls_key, password or "")
        return context

    @property
    def serving(self) -> ServingOptions:
        """How to listen."""
        return ServingOptions(
            host=self.host,
            port=self.port,
            tls_certificate=self.tls_certificate,
            tls_key=self.tls_key,
            tls_key_password=None if self.tls_key_password is None else self.tls_key_password.get_secret_value(),
            tls_client_ca=self.tls_client_ca,
            max_connections=self.max_connections,
            idle_timeout=self.idle_timeout,
            shutdown_timeout=self.shutdown_timeout,
        )

    def collection_environment(self) -> dict[str, str]:
        """The environment variables of the command `gc` for this catalog, beside its root and durability."""
        given = {f"{PREFIX}STORAGE": json.dumps(self.storage)} if self.storage else {}
        if self.storage_concurrency is not None:
            given[f"{PREFIX}STORAGE_CONCURRENCY"] = str(self.storage_concurrency)
        if self.manifest_store is not None:
            given[f"{PREFIX}MANIFEST_STORE"] = self.manifest_store.get_secret_value()
        return given

    @property
    def catalog(self) -> CatalogSource:
        """The catalog to serve."""
        return CatalogSource(
            self.root,
            storage=self.storage,
            durability=self.durability,
            storage_concurrency=self.storage_concurrency,
            manifest_store=None if self.manifest_store is None else self.manifest_store.get_secret_value(),
            vending=VendingOptions(
                static=self.vended_storage,
                role_arn=self.vended_role_arn,
                azure_sas=self.vended_azure_sas,
                google_token=self.vended_google_token,
                sts_endpoint=self.vended_sts_endpoint,
                permission=self.vended_permission,
                duration=timedelta(seconds=self.vended_seconds),
            ),
            options=CatalogOptions(
                limits=Limits(operations=self.max_operations),
                allowed_locations=tuple(self.allowed_locations),
                blob_locations=tuple(self.blob_locations),
                implicit_namespaces=self.implicit_namespaces,
                verify_data_files=self.verify_data_files,
                sole_writer=self.fenced,
                maintenance=self.maintenance,
            ),
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line, environment, file."""
        del env_settings, dotenv_settings, file_secret_settings
        return init_settings, EnvironmentSource(settings_cls), FileSource(settings_cls)


def load_settings(config: Path | None, **given: object) -> Settings:
    """Settings from what was given (None: not given), the environment, and a TOML file.

    Raises:
        pydantic.ValidationError: a setting is missing or wrong; `explain` puts it into words.
        pydantic_settings.SettingsError: a variable names no setting, or a text is no JSON or TOML.
        FileNotFoundError: there is no such file.
    """
    if config is not None and not config.is_file():
        raise FileNotFoundError(f"no settings file {config}")
    chosen = {name: value for name, value in given.items() if value is not None}

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=config)

    return FromFile(**chosen)  # type: ignore[arg-type]  # what is given is checked by pydantic


def environment_settings() -> dict[str, Any]:
    """The settings in the environment of this process, not validated; see `read_environment`."""
    return read_environment(os.environ, Settings.model_fields)


def explain(error: ValidationError) -> str:
    """The problems with settings in one line, without any value that may be secret."""
    return "; ".join(
        f"{item['loc'][0]}: no such setting{suggestion(str(item['loc'][0]), '', Settings.model_fields)}"
        if item["type"] == "extra_forbidden" and len(item["loc"]) == 1
        else f"{item['loc'][0]}: expected a value, found none: give --{str(item['loc'][0]).replace('_', '-')} or "
        f"{PREFIX}{str(item['loc'][0]).upper()}"
        if item["type"] == "missing" and len(item["loc"]) == 1
        else f"{'.'.join(map(str, item['loc']))}: {item['msg'].removeprefix('Value error, ')}".removeprefix(": ")
        for item in error.errors(include_input=False, include_url=False, include_context=False)
    )
