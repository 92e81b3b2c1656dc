"""Authentication by API keys."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import traceback
from pathlib import Path
from typing import Any

import httpx
import pytest
from lance_namespace.errors import UnauthenticatedError

from namespace_server.rest.identity import Authenticator, KeyRing
from tests.waiting import until

HASHED = "sha256:" + hashlib.sha256(b"second-key").hexdigest()
KEYS = {"first-key": "ann", HASHED: "bob"}


@pytest.mark.parametrize(
    ("headers", "principal"),
    [
        ({"x-api-key": "first-key"}, "ann"),
        ({"x-api-key": "second-key"}, "bob"),
        ({"authorization": "Bearer first-key"}, "ann"),
        ({"authorization": "bearer second-key"}, "bob"),
        ({"x-api-key": "first-key", "authorization": "Bearer wrong"}, "ann"),
    ],
)
def test_a_known_key_names_its_principal(
    serve: Any, echo_catalog: Any, headers: dict[str, str], principal: str
) -> None:
    with httpx.Client(base_url=serve(echo_catalog, keys=KEYS).url) as http:
        assert http.post("/v1/table/t/declare", json={}, headers=headers).json()["principal"] == principal


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-api-key": ""},
        {"x-api-key": "wrong"},
        {"x-api-key": HASHED},
        {"x-api-key": HASHED.removeprefix("sha256:")},
        {"x-api-key": "wrong", "authorization": "Bearer first-key"},
        {"authorization": "first-key"},
        {"authorization": "Basic first-key"},
        {"authorization": "Bearer"},
    ],
)
def test_a_request_without_a_known_key_is_refused(serve: Any, echo_catalog: Any, headers: dict[str, str]) -> None:
    with httpx.Client(base_url=serve(echo_catalog, keys=KEYS).url) as http:
        for path in ("/v1/table/t/declare", "/v1/table/t/describe", "/v1/table/t/query"):
            response = http.post(path, json={"identity": {"api_key": "first-key"}}, headers=headers)
            assert (response.status_code, response.json()["code"]) == (401, 16)
            assert response.headers["www-authenticate"] == "Bearer"
    assert echo_catalog.groups == []


def test_the_probes_need_no_key(serve: Any, echo_catalog: Any) -> None:
    with httpx.Client(base_url=serve(echo_catalog, keys=KEYS).url) as http:
        assert http.get("/health/live").status_code == http.get("/health/ready").status_code == 200


def test_without_keys_every_request_is_anonymous(serve: Any, echo_catalog: Any) -> None:
    with httpx.Client(base_url=serve(echo_catalog).url) as http:
        answer = http.post("/v1/table/t/declare", json={}, headers={"x-api-key": "first-key"}).json()
        assert answer["principal"] is None


@pytest.mark.parametrize("key", ["sha256:", "sha256:abc", "sha256:" + "0" * 62, "sha256:" + "x" * 64])
def test_a_digest_is_one(key: str) -> None:
    with pytest.raises(ValueError, match=r"hex"):
        Authenticator({key: "ann"})


class TestKeyRing:
    @pytest.mark.parametrize("key", ["", "       ", "seven-7", " with-space", "with-tab\tinside", "trailing-space "])
    def test_a_key_is_eight_printable_characters(self, key: str) -> None:
        with pytest.raises(ValueError, match=r"entry 2: expected a key of .*characters") as caught:
            KeyRing.parse({"first-key": "ann", key: "bob"})
        assert "bob" not in str(caught.value)
        assert not key.strip() or key not in str(caught.value)

    @pytest.mark.parametrize("principal", ["", "  ", "a\nb", "a\u202eb", "p" * 256, 5, None, {"a": "b"}])
    def test_a_principal_is_printable_text(self, principal: object) -> None:
        with pytest.raises(ValueError, match=r"entry 1: expected .*principal") as caught:
            KeyRing.parse({"first-key": principal})
        assert "first-key" not in str(caught.value)

    def test_a_principal_has_255_characters(self) -> None:
        assert KeyRing.parse({"first-key": "é" * 255}).find(b"first-key") == "é" * 255

    def test_one_key_has_one_principal(self) -> None:
        with pytest.raises(ValueError, match=r"entry 2: .*one principal"):
            KeyRing.parse({"second-key": "ann", HASHED: "bob"})
        assert KeyRing.parse({"second-key": "bob", HASHED: "bob"}).find(b"second-key") == "bob"

    def test_the_empty_key_has_no_principal(self) -> None:
        digest = hashlib.sha256(b"").hexdigest()
        assert KeyRing.parse({f"sha256:{digest}": "ann"}).find(b"") is None

    def test_it_shows_nothing(self) -> None:
        assert "ann" not in repr(KeyRing.parse(KEYS))


@pytest.mark.parametrize(
    "headers", [{b"x-api-key": b""}, {b"authorization": b"Bearer "}, {b"authorization": b"Bearer   "}]
)
def test_an_empty_key_is_no_key(headers: dict[bytes, bytes]) -> None:
    digest = hashlib.sha256(b"").hexdigest()
    with pytest.raises(UnauthenticatedError):
        Authenticator({f"sha256:{digest}": "ann"}).identify(headers)


def asked(authenticator: Authenticator, key: str) -> str | None:
    try:
        found = authenticator.identify({b"x-api-key": key.encode()})
        return None if found is None else found.principal
    except UnauthenticatedError:
        return None


class TestKeysFile:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "keys.toml"
        path.write_text('"key-of-ann" = "ann"\n')
        return path

    def test_its_keys_join_the_others(self, path: Path) -> None:
        authenticator = Authenticator(KEYS, path)
        assert [asked(authenticator, key) for key in ("first-key", "second-key", "key-of-ann")] == ["ann", "bob", "ann"]

    def test_json_is_told_by_the_name(self, tmp_path: Path) -> None:
        path = tmp_path / "keys.json"
        path.write_text(json.dumps({HASHED: "bob"}))
        assert asked(Authenticator({}, path), "second-key") == "bob"

    def test_a_key_of_two_principals_is_refused(self, path: Path) -> None:
        with pytest.raises(ValueError, match=r"keys.toml: a key belongs to another principal"):
            Authenticator({"key-of-ann": "bob"}, path)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (b"", "expected at least one key, found none"),
            (b'"SECRETKEY4" = 5', "entry 1: expected the name of a principal as text, found int"),
            (b'"SECRETKEY4" = "a"\n"SECRETKEY4" = "b"', "malformed TOML at end of document"),
            (b"a = {SECRETKEY4 = 1, SECRETKEY4 = 2}", "malformed TOML at line 1"),
            (b'SECRETKEY4 "ann"', "malformed TOML at line 1, column 12"),
            (b'"SECRETKEY4\xff" = "ann"', "expected UTF-8, found another byte at offset 11"),
        ],
    )
    def test_a_wrong_file_is_refused_and_never_shown(self, path: Path, text: bytes, problem: str) -> None:
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"api_keys_file /.*keys.toml: ") as caught:
            Authenticator({}, path)
        assert problem in str(caught.value)
        assert "SECRET" not in "".join(traceback.format_exception(caught.value, chain=True))

    @pytest.mark.parametrize("text", ['{"SECRETKEY4": ', '["SECRETKEY4"]', "[" * 100_000, '{"SECRETKEY4": {}}'])
    def test_wrong_json_is_refused_and_never_shown(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "keys.json"
        path.write_text(text)
        with pytest.raises(ValueError, match=r"keys.json: .*expected") as caught:
            Authenticator({}, path)
        assert "SECRET" not in str(caught.value)

    def test_a_pipe_is_refused_and_not_waited_for(self, tmp_path: Path) -> None:
        pipe = tmp_path / "keys.toml"
        os.mkfifo(pipe)
        with pytest.raises(ValueError, match="expected a regular file"):
            Authenticator({}, pipe)

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            Authenticator({}, tmp_path / "nowhere.toml")

    def test_a_reload_replaces_all_keys_at_once(self, path: Path) -> None:
        authenticator = Authenticator({"first-key": "ann"}, path)
        path.write_text('"key-of-bob" = "bob"\n')
        assert authenticator.reload()
        found = [asked(authenticator, key) for key in ("first-key", "key-of-ann", "key-of-bob")]
        assert found == ["ann", None, "bob"]

    @pytest.mark.parametrize("text", ["", '"" = "ann"', "SECRETKEY4", '"SECRETKEY4" = 5', None])
    def test_a_reload_that_fails_keeps_the_keys(
        self, path: Path, text: str | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        authenticator = Authenticator({}, path)
        path.unlink()
        if text is not None:
            path.write_text(text)
        assert not authenticator.reload()
        assert (asked(authenticator, "key-of-ann"), asked(authenticator, "")) == ("ann", None)
        [record] = caplog.records
        assert (record.levelname, record.exc_info) == ("ERROR", None)
        assert str(path) in record.getMessage()
        assert "SECRET" not in caplog.text

    def test_a_change_is_noticed(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        authenticator = Authenticator({}, path)
        authenticator.start()
        authenticator.start()
        try:
            path.write_text("SECRETKEY4")
            until(lambda: "malformed TOML" in caplog.text, 30)
            other = path.with_name("new")
            other.write_text('"key-of-bob" = "bob"\n')
            other.replace(path)
            until(lambda: asked(authenticator, "key-of-bob") == "bob", 30)
        finally:
            authenticator.stop()
        assert asked(authenticator, "key-of-ann") is None
        assert [record.levelname for record in caplog.records if record.levelno > logging.WARNING] == ["ERROR"]
        assert "api-keys" not in {thread.name for thread in threading.enumerate()}

    def test_a_signal_reads_it_again(self, path: Path) -> None:
        before = path.stat()
        authenticator = Authenticator({}, path)
        authenticator.start()
        try:
            with path.open("r+") as file:  # same size, inode and modification time
                file.write(path.read_text().replace("key-of-ann", "key-of-bob"))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            authenticator.reload_soon()
            until(lambda: asked(authenticator, "key-of-bob") == "ann", 30)
        finally:
            authenticator.stop()
