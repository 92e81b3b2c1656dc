"""Where settings come from, and what is refused."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from pydantic import ValidationError

from namespace_server.logs import JsonFormatter
from namespace_server.settings import Settings, load_settings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(
        'root = "/from/file"\nport = 1111\nhost = "::1"\n[storage]\nregion = "eu"\n[api_keys]\nsecret = "ann"\n'
    )
    return path


def test_the_command_line_wins_over_the_environment_over_the_file(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_NAMESPACE_PORT", "2222")
    monkeypatch.setenv("LANCE_NAMESPACE_ROOT", "/from/environment")
    settings = load_settings(config, root="/given", port=None)
    assert (settings.root, settings.port, settings.host) == ("/given", 2222, "::1")


def test_defaults() -> None:
    settings = load_settings(None, root="/r")
    assert (settings.host, settings.port, settings.durability) == ("127.0.0.1", 2333, "fsync")


def test_maps_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_NAMESPACE_API_KEYS", json.dumps({"secret": "ann"}))
    monkeypatch.setenv("LANCE_NAMESPACE_STORAGE__REGION", "eu")
    settings = load_settings(None, root="s3://bucket/catalog")
    assert settings.authenticator.principal({b"x-api-key": b"secret"}) == "ann"
    assert settings.namespace_properties() == {
        "root": "s3://bucket/catalog",
        "durability": "fsync",
        "storage.region": "eu",
    }


def test_keys_are_not_shown(config: Path) -> None:
    assert "secret" not in repr(load_settings(config))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("root", ""),
        ("port", 65536),
        ("port", "x"),
        ("durability", "sometimes"),
        ("api_keys", {"sha256:0": "ann"}),
        ("max_body_bytes", 0),
        ("log_level", "loud"),
    ],
)
def test_wrong_values_are_named(name: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        load_settings(None, **{"root": "/r", name: value})
    assert caught.value.errors()[0]["loc"][0] == name


def test_the_root_is_needed() -> None:
    with pytest.raises(ValidationError, match="root"):
        load_settings(None)


def test_unknown_names_in_the_file_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('root = "/r"\nprot = 1\n')
    with pytest.raises(ValidationError, match="prot"):
        load_settings(path)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.toml"):
        load_settings(tmp_path / "nowhere.toml", root="/r")


@pytest.mark.parametrize(
    ("given", "exposed"),
    [
        ({}, False),
        ({"host": "localhost"}, False),
        ({"host": "127.8.8.8"}, False),
        ({"host": "::1"}, False),
        ({"host": "0.0.0.0"}, True),
        ({"host": "::"}, True),
        ({"host": "192.168.1.1"}, True),
        ({"host": "example.org"}, True),
        ({"host": "0.0.0.0", "insecure": True}, False),
        ({"host": "0.0.0.0", "api_keys": {"k": "ann"}}, False),
    ],
)
def test_who_can_reach_it(given: dict[str, object], exposed: bool) -> None:
    assert Settings(root="/r", **given).exposed is exposed


def test_log_lines_for_machines() -> None:
    try:
        raise ZeroDivisionError("oops")
    except ZeroDivisionError as error:
        record = logging.LogRecord(
            "a.b", logging.ERROR, __file__, 1, "it %s", ("broke",), (type(error), error, error.__traceback__)
        )
    line = json.loads(JsonFormatter().format(record))
    assert (line["level"], line["logger"], line["message"]) == ("error", "a.b", "it broke")
    assert "ZeroDivisionError: oops" in line["traceback"]
