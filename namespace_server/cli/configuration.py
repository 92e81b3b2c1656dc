"""The settings of a server: loading them for a command, and the command that shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from namespace_server.cli.command import refusal, verbose_command
from namespace_server.cli.options import AsJson, Config, Root
from namespace_server.cli.output import print_json, print_table

if TYPE_CHECKING:
    from namespace_server.settings import Settings

HIDDEN: Final = "(hidden)"
_SECRET: Final = frozenset({"api_keys", "manifest_store", "tls_key_password"})
_SECRET_MAPS: Final = frozenset({"storage", "vended_storage"})
_HARMLESS: Final = re.compile(r".*(region|endpoint|timeout|allow_http|account_name|virtual_hosted_style_request)")
_USER: Final = re.compile(r"//[^/@]*@")

config_commands = typer.Typer(help="Settings of a server.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A setting, its value as a text or `HIDDEN`, and where it came from."""

    name: str
    value: str
    source: str


@config_commands.command()
@verbose_command
def show(
    root: Root = None,
    config: Config = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those that have their defaults.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the settings that `serve` would use with these options, and where each came from.

    Keys, passwords, URLs of databases and secrets of object stores are hidden.
    """
    found = [
        setting
        for setting in settings_in_force(config, root=root)
        if everything or setting.source != "default" or setting.name in {"root", "host", "port"}
    ]
    if as_json:
        print_json([asdict(setting) for setting in found])
        return
    print_table(("setting", "value", "from"), [(each.name, each.value, each.source) for each in found])


def load(config: Path | None, **given: object) -> Settings:
    """The settings from options, environment and file. Ends the command where they are wrong."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from namespace_server.settings import explain, load_settings

    try:
        return load_settings(config, **given)
    except ValidationError as error:
        raise refusal(f"settings: {explain(error)}") from error
    except (OSError, SettingsError) as error:
        raise refusal(f"settings: {error}") from error


def settings_in_force(config: Path | None, **given: object) -> Iterator[SettingInForce]:
    """All settings, in the order of their definition; the entries of maps one by one."""
    from namespace_server.secret_texts import parse_toml
    from namespace_server.setting_sources import PREFIX
    from namespace_server.settings import environment_settings

    settings = load(config, **given)
    written = {} if config is None else parse_toml(config.read_text("utf-8"))
    surroundings = environment_settings()

    def source(name: str, key: str | None = None) -> str:
        def holds(place: Mapping[str, Any]) -> bool:
            return name in place if key is None else key in place.get(name, ())

        if given.get(name) is not None:
            return f"option --{name.replace('_', '-')}"
        if holds(surroundings):
            return f"environment {PREFIX}{name.upper()}" + ("" if key is None or name not in _SECRET_MAPS else "__…")
        return f"file {config}" if holds(written) else "default"

    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if name in _SECRET:
            yield SettingInForce(name, HIDDEN if value else "", source(name))
        elif isinstance(value, Mapping) and value:
            for key, text in value.items():
                shown = HIDDEN if name in _SECRET_MAPS and not _HARMLESS.fullmatch(key) else _USER.sub("//", text)
                yield SettingInForce(f"{name}.{key}", shown, source(name, key))
        else:
            yield SettingInForce(name, _shown(value), source(name))


def _shown(value: object) -> str:
    if value is None or value in ({}, []):
        return ""
    if isinstance(value, bool | list):
        return json.dumps(value)
    return _USER.sub("//", str(value))
