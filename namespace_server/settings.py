"""What the server is told: by command line, environment, file, in this order."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from namespace_server.rest.identity import Authenticator


class Settings(BaseSettings):
    """Every setting `x` can come from the environment as `LANCE_NAMESPACE_X`, maps as JSON or key by key as
    `LANCE_NAMESPACE_STORAGE__REGION`. Unknown names in the file are errors.
    """

    model_config = SettingsConfigDict(
        env_prefix="LANCE_NAMESPACE_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    root: str = Field(min_length=1, description="Directory or URI of the catalog.")
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=2333, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    durability: Literal["fsync", "none"] = Field(
        default="fsync", description="Whether a commit is on the disk before it is answered (local roots)."
    )
    storage: dict[str, str] = Field(default_factory=dict, description="Options of the object store.")
    manifest_store: SecretStr | None = Field(
        default=None, description="Database that decides commits where the store cannot: sqlite:/// or postgresql://."
    )
    api_keys: dict[SecretStr, str] = Field(
        default_factory=dict, description="API key, or sha256: and the hex digest of one, to name of the principal."
    )
    insecure: bool = Field(default=False, description="Listen beyond loopback without API keys.")
    max_body_bytes: int = Field(default=64 << 20, gt=0, description="The longest request body.")
    queue_capacity: int = Field(default=4096, gt=0, description="Changes accepted and not yet answered.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"

    @field_validator("api_keys")
    @classmethod
    def _check_keys(cls, keys: dict[SecretStr, str]) -> dict[SecretStr, str]:
        Authenticator(_plain(keys))
        return keys

    @property
    def authenticator(self) -> Authenticator:
        """Who is let in."""
        return Authenticator(_plain(self.api_keys))

    @property
    def exposed(self) -> bool:
        """Whether strangers could reach the server and change the catalog."""
        return not (self.insecure or self.api_keys or _is_loopback(self.host))

    def namespace_properties(self) -> dict[str, str]:
        """The properties of the `DirectoryNamespace` to serve."""
        options = {f"storage.{name}": value for name, value in self.storage.items()}
        if self.manifest_store is not None:
            options["manifest_store"] = self.manifest_store.get_secret_value()
        return {"root": self.root, "durability": self.durability, **options}

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
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(config: Path | None, **given: object) -> Settings:
    """Settings from what was given (None: not given), the environment, and a TOML file.

    Raises `pydantic.ValidationError` naming each setting that is missing or wrong, `FileNotFoundError` if there is no
    such file, `tomllib.TOMLDecodeError` if it is not TOML.
    """
    if config is not None and not config.is_file():
        raise FileNotFoundError(f"no settings file {config}")
    chosen = {name: value for name, value in given.items() if value is not None}

    class FromFile(Settings):
        model_config = SettingsConfigDict(toml_file=config)

    return FromFile(**chosen)  # type: ignore[arg-type]  # what is given is checked by pydantic


def _plain(keys: dict[SecretStr, str]) -> dict[str, str]:
    return {key.get_secret_value(): principal for key, principal in keys.items()}


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
