"""Where settings come from, and what is refused."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import ValidationError
from pydantic_settings import SettingsError

from namespace_server.directory.properties import read_properties
from namespace_server.observability.logs import JsonFormatter
from namespace_server.rest.principals import RequestIdentity
from namespace_server.setting_sources import REMOVED
from namespace_server.settings import Settings, explain, load_settings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(
        'root = "/from/file"\nport = 1111\nhost = "::1"\n[storage]\nregion = "eu"\n[api_keys]\n"first-secret" = "ann"\n'
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
    monkeypatch.setenv("LANCE_NAMESPACE_API_KEYS", json.dumps({"first-secret": "ann"}))
    monkeypatch.setenv("LANCE_NAMESPACE_STORAGE__REGION", "eu")
    settings = load_settings(None, root="s3://bucket/catalog")
    assert settings.authenticator.identify({b"x-api-key": b"first-secret"}) == RequestIdentity("ann")
    assert settings.catalog == read_properties({"root": "s3://bucket/catalog", "storage.region": "eu"})


def test_keys_are_not_shown(config: Path) -> None:
    shown = repr(load_settings(config, peer_secret="a secret of servers"))
    assert "first-secret" not in shown
    assert "a secret" not in shown


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
        ({"host": "0.0.0.0", "api_keys": {"some-key": "ann"}}, False),
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


class TestEnvironment:
    @pytest.mark.parametrize(
        ("variable", "problem"),
        [
            (
                "LANCE_NAMESPACE_APIKEYS",
                "LANCE_NAMESPACE_APIKEYS: no such setting, did you mean LANCE_NAMESPACE_API_KEYS?",
            ),
            (
                "LANCE_NAMESPACE_LOGLEVEL",
                "LANCE_NAMESPACE_LOGLEVEL: no such setting, did you mean LANCE_NAMESPACE_LOG_LEVEL?",
            ),
            ("lance_namespace_xyzzy", "LANCE_NAMESPACE_XYZZY: no such setting"),
            (
                "LANCE_NAMESPACE_MAX_JSON_DEPTH",
                "LANCE_NAMESPACE_MAX_JSON_DEPTH: no such setting any more: the JSON of a body is nested",
            ),
            ("LANCE_NAMESPACE_PORT__X", "LANCE_NAMESPACE_PORT__…: no such setting, did you mean LANCE_NAMESPACE_PORT?"),
            ("LANCE_NAMESPACE_STORAGE__", "LANCE_NAMESPACE_STORAGE__…: no such setting"),
            ("LANCE_NAMESPACE_", "LANCE_NAMESPACE_: no such setting"),
        ],
    )
    def test_a_variable_that_is_no_setting_is_an_error(
        self, variable: str, problem: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(variable, "SECRET")
        with pytest.raises(SettingsError) as caught:
            load_settings(None, root="/r")
        assert str(caught.value).startswith(problem)

    @pytest.mark.parametrize("name", ["URL", "API_KEY", "TOKEN", "PROFILE"])
    def test_variables_of_clients_are_no_settings_and_no_errors(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(f"LANCE_NAMESPACE_{name}", "x")
        assert not load_settings(None, root="/r").api_keys

    def test_a_key_in_a_name_is_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LANCE_NAMESPACE_API_KEYS__SECRETKEY4", "ann")
        with pytest.raises(SettingsError) as caught:
            load_settings(None, root="/r")
        assert "SECRET" not in str(caught.value)

    def test_names_know_no_case(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("lance_namespace_port", "2222")
        assert load_settings(None, root="/r").port == 2222

    @pytest.mark.parametrize(
        "text", ["a.example,  B.example ,", '["a.example", "b.example"]', ' ["a.example","B.EXAMPLE"]']
    )
    def test_lists_are_json_or_items_between_commas(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LANCE_NAMESPACE_ALLOWED_HOSTS", text)
        assert load_settings(None, root="/r").allowed_hosts == ["a.example", "b.example"]

    def test_options_one_by_one_go_over_those_in_json_over_those_in_the_file(
        self, config: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LANCE_NAMESPACE_STORAGE", '{"region": "us", "endpoint": "e"}')
        monkeypatch.setenv("LANCE_NAMESPACE_STORAGE__REGION", "ap")
        assert load_settings(config).storage == {"region": "ap", "endpoint": "e"}
        monkeypatch.delenv("LANCE_NAMESPACE_STORAGE")
        monkeypatch.delenv("LANCE_NAMESPACE_STORAGE__REGION")
        assert load_settings(config).storage == {"region": "eu"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"":"svc"}', "api_keys: entry 1: expected a key of at least 8 characters, found 0"),
        ('{"SECRETKEY4":5}', "api_keys: entry 1: expected the name of a principal as text, found int"),
        ('{"SECRETKEY4":""}', "api_keys: entry 1: expected a principal of 1 to 255 printable characters"),
        ('{"SECRET', "LANCE_NAMESPACE_API_KEYS: expected a JSON object, found malformed JSON at line 1 column 2"),
        ('"SECRETKEY4"', "LANCE_NAMESPACE_API_KEYS: expected a JSON object, found str"),
        ("", "LANCE_NAMESPACE_API_KEYS: expected a JSON object, found malformed JSON at line 1 column 1"),
    ],
)
def test_wrong_keys_are_refused_and_never_shown(text: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_NAMESPACE_API_KEYS", text)
    with pytest.raises((ValidationError, SettingsError)) as caught:
        load_settings(None, root="/r")
    found = explain(caught.value) if isinstance(caught.value, ValidationError) else str(caught.value)
    assert found == problem
    assert "SECRET" not in str(caught.value)
    assert "SECRET" not in repr(caught.value)


def test_a_settings_file_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('root = "/r"\napi_keys = {SECRETKEY4 = "a", SECRETKEY4 = "b"}\n')
    with pytest.raises(SettingsError, match=r"settings.toml: expected TOML, found malformed TOML at line 2") as caught:
        load_settings(path)
    assert "SECRET" not in str(caught.value)
    path.write_text('root = "/r"\n[api_keys]\nSECRETKEY4 = 4\n')
    with pytest.raises(ValidationError) as wrong:
        load_settings(path)
    assert "SECRET" not in str(wrong.value)


def test_a_misspelt_name_in_the_file_is_corrected(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('root = "/r"\n[api_key]\nSECRETKEY4 = "ann"\n')
    with pytest.raises(ValidationError) as caught:
        load_settings(path)
    assert explain(caught.value) == "api_key: no such setting, did you mean api_keys?"


ISSUER = {"issuer": "https://login.example.org", "audience": "lance"}


def test_issuers_of_tokens_come_from_the_file_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.toml"
    lines = ['root = "/r"', "[[token_issuers]]", *(f'{name} = "{value}"' for name, value in ISSUER.items())]
    path.write_text("\n".join([*lines, 'roles_claim = ["realm_access", "roles"]', "clock_skew = 5"]))
    [found] = load_settings(path).token_issuers
    assert (found.audience, found.roles_claim, found.clock_skew) == (("lance",), ("realm_access", "roles"), 5)
    assert (found.prefix, found.algorithms) == ("https://login.example.org#", ("RS256", "ES256"))
    monkeypatch.setenv("LANCE_NAMESPACE_TOKEN_ISSUERS", json.dumps([{**ISSUER, "audience": ["a", "b"]}]))
    settings = load_settings(path, host="0.0.0.0")
    [found] = settings.token_issuers
    assert (found.audience, found.roles_claim, settings.exposed) == (("a", "b"), (), False)


@pytest.mark.parametrize(
    ("issuers", "problem"),
    [
        ([{"issuer": "https://i"}], "token_issuers.0.audience: Field required"),
        ([{**ISSUER, "audience": []}], "token_issuers.0.audience: "),
        ([{**ISSUER, "audience": ""}], "token_issuers.0.audience.0: String should have at least 1 character"),
        (
            [{**ISSUER, "issuer": "http://login.example.org"}],
            "token_issuers.0.issuer: 'http://login.example.org': ",
        ),
        ([{**ISSUER, "issuer": "https://u:p@login.example.org"}], "token_issuers.0.issuer: "),
        ([{**ISSUER, "issuer": "file:///etc/passwd"}], "token_issuers.0.issuer: "),
        ([{**ISSUER, "issuer": "http://127.0.0.1.example.org"}], "token_issuers.0.issuer: "),
        ([{**ISSUER, "algorithms": ["HS256"]}], "token_issuers.0.algorithms.0: Input should be 'RS256'"),
        ([{**ISSUER, "algorithms": "none"}], "token_issuers.0.algorithms.0: "),
        ([{**ISSUER, "algorithms": []}], "token_issuers.0.algorithms: "),
        ([{**ISSUER, "clock_skew": 3600}], "token_issuers.0.clock_skew: "),
        ([{**ISSUER, "audiences": "x"}], "token_issuers.0.audiences: Extra inputs are not permitted"),
        ([{**ISSUER, "principal_prefix": ""}], "token_issuers.0.principal_prefix: "),
        ([{**ISSUER, "ca": "/nowhere.pem"}], "token_issuers.0.ca: "),
        ([ISSUER, ISSUER], "token_issuers: https://login.example.org: expected each issuer once"),
        (
            [{**ISSUER, "principal_prefix": "a"}, {**ISSUER, "issuer": "https://other", "principal_prefix": "ab"}],
            "token_issuers: https://login.example.org, https://other: expected a principal_prefix of each",
        ),
        (
            [{**ISSUER, "roles_claim": "a"}, {**ISSUER, "issuer": "https://other", "roles_claim": "b"}],
            "token_issuers: https://login.example.org, https://other: expected a role_prefix of each",
        ),
        ("[1", "token_issuers: expected a JSON array"),
    ],
)
def test_issuers_of_tokens_are_checked(issuers: object, problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        load_settings(None, root="/r", token_issuers=issuers)
    assert explain(caught.value).startswith(problem)


def test_the_principal_of_a_key_cannot_be_one_of_a_token() -> None:
    keys = {"a-key-of-somebody": "https://login.example.org#ann"}
    with pytest.raises(ValueError, match="api_keys: expected no principal that begins as those of tokens do"):
        load_settings(None, root="/r", token_issuers=[ISSUER], api_keys=keys).authenticator  # noqa: B018


def test_a_file_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('"key-of-ann" = "ann"\n')
    settings = load_settings(None, root="/r", host="0.0.0.0", api_keys_file=path)
    assert not settings.exposed
    assert settings.authenticator.identify({b"x-api-key": b"key-of-ann"}) == RequestIdentity("ann")
    with pytest.raises(ValidationError, match="api_keys_file"):
        load_settings(None, root="/r", api_keys_file=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allowed_hosts", "https://example.org"),
        ("allowed_hosts", '["a"'),
        ("allowed_hosts", "[5]"),
        ("allowed_origins", "example.org"),
        ("allowed_origins", "https://example.org/path"),
        ("allowed_origins", "*"),
        ("allowed_locations", "relative/path"),
        ("allowed_locations", '[""]'),
        ("blob_locations", "relative/path"),
        ("tls_certificate", "/nowhere.pem"),
        ("max_operations", -1),
        ("body_timeout", 0),
        ("body_timeout", "inf"),
        ("body_timeout", "nan"),
        ("worker_memory_bytes", -1),
        ("access_log", "perhaps"),
        ("manifest_store", ""),
    ],
)
def test_bounds(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"LANCE_NAMESPACE_{name.upper()}", str(value))
    with pytest.raises(ValidationError) as caught:
        load_settings(None, root="/r")
    assert caught.value.errors()[0]["loc"][0] == name


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    for name in ("certificate", "key", "ca"):
        (tmp_path / name).write_text("pem")
    certificate, key, authorities = tmp_path / "certificate", tmp_path / "key", tmp_path / "ca"
    for wrong in ({"tls_certificate": certificate}, {"tls_key": key}, {"tls_client_ca": authorities}):
        with pytest.raises(ValidationError, match="tls_"):
            load_settings(None, root="/r", **wrong)
    with pytest.raises(ValidationError, match="tls_key_password"):
        load_settings(None, root="/r", tls_key_password="SECRET")
    settings = load_settings(
        None, root="/r", tls_certificate=certificate, tls_key=key, tls_key_password="SECRET", tls_client_ca=authorities
    )
    assert "SECRET" not in repr(settings)


def test_the_catalog_to_serve() -> None:
    """It is the one that the properties of a `DirectoryNamespace` describe."""
    assert load_settings(None, root="/r").catalog == read_properties({"root": "/r"})
    settings = load_settings(
        None,
        root="s3://b/r",
        durability="none",
        storage={"region": "x"},
        storage_concurrency=7,
        manifest_store="sqlite:///file",
        allowed_locations="/a, s3://b/c",
        blob_locations="/media",
        implicit_namespaces=True,
        verify_data_files=True,
        fenced=True,
        max_operations=9,
        vended_storage={"endpoint": "y"},
        vended_role_arn="arn:aws:iam::123456789012:role/r",
        vended_sts_endpoint="https://sts",
        vended_permission="read",
        vended_seconds=900,
    )
    properties = {
        "root": "s3://b/r",
        "durability": "none",
        "storage.region": "x",
        "storage_concurrency": "7",
        "manifest_store": "sqlite:///file",
        "allowed_locations": '["/a", "s3://b/c"]',
        "blob_locations": "/media",
        "implicit_namespaces": "true",
        "verify_data_files": "true",
        "fenced": "true",
        "max_operations": "9",
        "vended.endpoint": "y",
        "vended_role_arn": "arn:aws:iam::123456789012:role/r",
        "vended_sts_endpoint": "https://sts",
        "vended_permission": "read",
        "vended_seconds": "900",
    }
    assert settings.catalog == read_properties(properties)
    defaults = load_settings(None, root="s3://b/r").catalog
    for part, default in ((settings.catalog, defaults), (settings.catalog.vending, defaults.vending)):
        same = {each.name for each in fields(part) if getattr(part, each.name) == getattr(default, each.name)}
        assert same <= {"root", "azure_sas", "google_token", "sole_writer"}
    assert "sqlite" not in repr(settings.catalog)


def test_what_holds_in_place_of_removed_settings() -> None:
    bounds = load_settings(None, root="/r").limits
    assert (bounds.head, bounds.read_body, bounds.depth, bounds.data.rate) == (64 << 10, 1 << 20, 64, 16 << 10)
    options = load_settings(None, root="/r").catalog.options
    assert (options.limits.page_size, options.response_cache_bytes) == (100_000, 64 << 20)
    for name, holds in REMOVED.items():
        assert name not in Settings.model_fields
        with pytest.raises(ValidationError) as caught:
            load_settings(None, root="/r", **{name: 1})
        assert explain(caught.value) == f"{name}: no such setting any more: {holds}"
