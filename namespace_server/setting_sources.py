"""Sources of settings: the environment and a file."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from pydantic_settings import EnvSettingsSource, SettingsError, TomlConfigSettingsSource

from namespace_server.secret_texts import parse_json, parse_toml

PREFIX: Final = "LANCE_NAMESPACE_"
"""The prefix of the names of the environment variables."""
CLIENT_VARIABLES: Final = frozenset(f"{PREFIX}{name}" for name in ("URL", "API_KEY", "TOKEN", "PROFILE", "CA"))
"""Variables of clients, which may stand beside those of a server."""
REMOVED: Final[Mapping[str, str]] = {
    "max_header_bytes": "the path and the headers of a request have 64 KiB",
    "max_json_depth": "the JSON of a body is nested at most 64 deep",
    "max_page_size": "a page of a listing has at most 100,000 items",
    "max_read_body_bytes": "the body of a request that changes nothing has at most 1 MiB",
    "min_rows_rate": "16 KiB of rows must arrive in each second beyond body_timeout",
    "response_cache_bytes": "the response cache has 64 MiB",
    "spool_directory": "temporary files are in the directory that the variable TMPDIR names",
}
"""Settings of earlier releases, and what holds now. They are refused, so that nobody relies on them."""
_MAPS = ("storage", "vended_storage", "api_keys", "maintenance")
_OPTION = re.compile(r"(storage|vended_storage)__(.+)")
"""A variable for one option of an object store."""


class EnvironmentSource(EnvSettingsSource):
    """The environment of this process."""

    def __call__(self) -> dict[str, Any]:
        """See `read_environment`."""
        return read_environment(os.environ, self.settings_cls.model_fields)


class FileSource(TomlConfigSettingsSource):
    """A TOML file."""

    def _read_file(self, path: Any) -> dict[str, Any]:
        try:
            return parse_toml(path.read_text("utf-8"))
        except ValueError as error:
            problem = "expected UTF-8" if isinstance(error, UnicodeDecodeError) else error
            raise SettingsError(f"{path}: {problem}") from None


def read_environment(environment: Mapping[str, str], names: Collection[str]) -> dict[str, Any]:
    """The settings in the environment, not validated: texts, and mappings for storage options and `api_keys`.

    Names of variables are read without regard to case. Raises `SettingsError` for a variable that begins with
    `LANCE_NAMESPACE_` and names no setting, and for a map that is no JSON object. Those of clients are passed over.
    """
    found: dict[str, Any] = {}
    options: dict[str, dict[str, str]] = {}
    for variable, text in environment.items():
        if not variable.upper().startswith(PREFIX) or variable.upper() in CLIENT_VARIABLES:
            continue
        name = variable[len(PREFIX) :].lower()
        if option := _OPTION.fullmatch(name):
            options.setdefault(option[1], {})[option[2]] = text
        elif name in names:
            found[name] = text
        else:
            # What follows "__" may be a key of api_keys.
            known, nested, _ = name.partition("__")
            shown = f"{PREFIX}{known.upper()}{'__…' if nested else ''}"
            raise SettingsError(f"{shown}: no such setting{suggestion(known, PREFIX, names)}")
    for name in _MAPS:
        if name in found:
            try:
                found[name] = parse_json(found[name])
            except ValueError as error:
                raise SettingsError(f"{PREFIX}{name.upper()}: {error}") from None
    for name, single in options.items():
        found[name] = found.get(name, {}) | single
    return found


def suggestion(name: str, prefix: str, names: Collection[str]) -> str:
    """Of a name that is unknown: what holds in place of a setting that there was, or a name much like it; or ''."""
    if name in REMOVED:
        return f" any more: {REMOVED[name]}"
    near = difflib.get_close_matches(name, names, n=1)
    return f", did you mean {prefix}{near[0].upper() if prefix else near[0]}?" if near else ""
