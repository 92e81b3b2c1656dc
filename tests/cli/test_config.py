"""`config show`: the settings in force, where each came from, and no secret."""

from __future__ import annotations

from pathlib import Path

from namespace_server.settings import Settings
from tests.cli.commands import parsed, printed, refused


def test_each_setting_tells_where_it_came_from(tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text('host = "::1"\nport = 1\n[storage]\nregion = "eu"\n')
    found = parsed(
        *("config", "show", "--root", "/r", "--config", str(config), "--all"),
        LANCE_NAMESPACE_PORT="99",
        LANCE_NAMESPACE_STORAGE__ENDPOINT="http://h",
    )
    told = {each["name"]: (each["value"], each["source"]) for each in found}
    assert told["root"] == ("/r", "option --root")
    assert told["port"] == ("99", "environment LANCE_NAMESPACE_PORT")
    assert told["host"] == ("::1", f"file {config}")
    assert told["storage.region"] == ("eu", f"file {config}")
    assert told["storage.endpoint"] == ("http://h", "environment LANCE_NAMESPACE_STORAGE__…")
    assert told["durability"] == ("fsync", "default")
    assert {name.split(".")[0] for name in told} == set(Settings.model_fields)


def test_secrets_are_hidden(tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text(
        'manifest_store = "postgresql+psycopg://u:SECRET1@h/d"\n[api_keys]\n"SECRET2-of-ann" = "ann"\n'
        '[storage]\naws_secret_access_key = "SECRET3"\nendpoint = "http://u:SECRET4@h"\nunknown = "SECRET5"\n'
    )
    for more in ((), ("--all",), ("--json",)):
        shown = printed("config", "show", "--root", "/r", "--config", str(config), *more)
        assert "SECRET" not in shown
        assert shown.count("(hidden)") == 4
        assert "http://h" in shown


def test_without_all_only_what_was_set_is_shown() -> None:
    assert [line.split()[0] for line in printed("config", "show", "--root", "/r").splitlines()] == [
        *("setting", "root", "host", "port")
    ]


def test_settings_that_are_wrong_are_refused_as_by_serve() -> None:
    told = "settings: root: expected a value, found none: give --root or LANCE_NAMESPACE_ROOT"
    assert refused("config", "show") == told
    assert "no settings file /nowhere" in refused("config", "show", "--root", "/r", "--config", "/nowhere")
