"""When credentials are issued, kept, shared, renewed and forgotten."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from lance_namespace.errors import ServiceUnavailableError

from namespace_server.credentials.google import access_boundary
from namespace_server.credentials.s3 import session_policy
from namespace_server.credentials.temporary import Credentials, TemporaryCredentials
from namespace_server.credentials.vending import VendingOptions, open_vendor
from namespace_server.directory.namespace import DirectoryNamespace
from tests.credentials.guarded_google import boundary_allows
from tests.credentials.guarded_s3 import ROLE, policy_allows

HOUR = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Issuer:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.issued: list[str] = []
        self.fails = False
        self.gate = threading.Event()
        self.gate.set()

    def issue(self, path: str) -> Credentials:
        self.gate.wait(30)
        self.issued.append(path)
        if self.fails:
            raise ServiceUnavailableError("no answer")
        return Credentials({"key": f"{path} {len(self.issued)}"}, self.clock.now, self.clock.now + HOUR)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(clock: Clock) -> Issuer:
    return Issuer(clock)


def test_they_are_renewed_when_half_of_their_time_is_over(clock: Clock, issuer: Issuer) -> None:
    kept = TemporaryCredentials(issuer, clock=clock)
    first = kept.get("a")
    clock.now += HOUR / 2 - 1
    assert kept.get("a") is first
    clock.now += 2
    second = kept.get("a")
    assert second is not first
    assert second.expires_at - clock.now == HOUR


def test_valid_ones_are_handed_out_while_none_are_issued(clock: Clock, issuer: Issuer) -> None:
    kept = TemporaryCredentials(issuer, clock=clock)
    first = kept.get("a")
    issuer.fails = True
    clock.now += HOUR - 121
    assert kept.get("a") is first
    clock.now += 2
    with pytest.raises(ServiceUnavailableError):
        kept.get("a")
    issuer.fails = False
    assert kept.get("a") is not first


def test_calls_for_one_table_share_a_request(clock: Clock, issuer: Issuer) -> None:
    kept = TemporaryCredentials(issuer, clock=clock)
    issuer.gate.clear()
    with ThreadPoolExecutor(8) as threads:
        calls = [threads.submit(kept.get, "a") for _ in range(8)]
        issuer.gate.set()
        assert len({id(call.result()) for call in calls}) == 1
    assert issuer.issued == ["a"]


def test_an_error_is_told_to_all_who_share_a_request(clock: Clock, issuer: Issuer) -> None:
    kept = TemporaryCredentials(issuer, clock=clock)
    issuer.fails = True
    issuer.gate.clear()
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(kept.get, "a") for _ in range(4)]
        issuer.gate.set()
        assert all(isinstance(call.exception(), ServiceUnavailableError) for call in calls)


def test_tables_have_credentials_of_their_own_and_the_oldest_are_forgotten(clock: Clock, issuer: Issuer) -> None:
    kept = TemporaryCredentials(issuer, limit=2, clock=clock)
    first = {path: kept.get(path) for path in ("a", "b")}
    assert first["a"] != first["b"]
    kept.get("a")
    kept.get("c")  # of a and b, b was asked for less recently
    assert kept.get("a") is first["a"]
    assert kept.get("b") is not first["b"]


def test_they_do_not_print() -> None:
    options = VendingOptions(static={"aws_secret_access_key": "hidden"})
    assert "hidden" not in repr(Credentials({"aws_secret_access_key": "hidden"}, 0, 1))
    assert "hidden" not in repr(options)


@pytest.mark.parametrize("path", ["root/1_t", "a b/w$t", "odd*name/${aws:username}", "what?/x", "$/*"])
def test_a_policy_allows_one_directory(path: str) -> None:
    policy = session_policy("aws", "b", path, "write")
    place = "arn:aws:s3:::b"
    for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
        assert policy_allows(policy, action, f"{place}/{path}/data/x.lance")
        assert not policy_allows(policy, action, f"{place}/{path}x/data/x.lance")
        assert not policy_allows(policy, action, f"{place}/{path.replace('*', 'Z').replace('?', 'Z')}Z/x")
        assert not policy_allows(policy, action, f"{place}/other")
    for inside in (f"{path}/", f"{path}/_versions/"):
        assert policy_allows(policy, "s3:ListBucket", place, inside)
    for outside in ("", path[:-1], path, f"{path}2", f"{path}2/"):
        assert not policy_allows(policy, "s3:ListBucket", place, outside)
    assert len(policy) < 2048


@pytest.mark.parametrize("below", ["", "tree/dev/"])
def test_a_policy_of_a_fenced_root_leaves_canonical_manifests_to_the_server(below: str) -> None:
    policy = session_policy("aws", "b", "root/1_t", "write", sole_writer=True)
    place = f"arn:aws:s3:::b/root/1_t/{below}_versions"
    assert not policy_allows(policy, "s3:PutObject", f"{place}/18446744073709551614.manifest")
    for action, name in (
        ("s3:GetObject", "18446744073709551614.manifest"),
        ("s3:DeleteObject", "18446744073709551614.manifest"),
        ("s3:PutObject", "18446744073709551614.manifest-5a1f"),
        ("s3:PutObject", "latest_version_hint.json"),
    ):
        assert policy_allows(policy, action, f"{place}/{name}")
    assert policy_allows(policy, "s3:PutObject", "arn:aws:s3:::b/root/1_t/data/x.lance")
    unfenced = session_policy("aws", "b", "root/1_t", "write")
    assert policy_allows(unfenced, "s3:PutObject", f"{place}/18446744073709551614.manifest")


@pytest.mark.parametrize("path", ["a*b", "a?b"])
def test_a_wildcard_in_a_name_is_none_in_the_policy(path: str) -> None:
    policy = session_policy("aws", "b", path, "read")
    assert policy_allows(policy, "s3:GetObject", f"arn:aws:s3:::b/{path}/x")
    assert not policy_allows(policy, "s3:GetObject", "arn:aws:s3:::b/aZb/x")


def test_a_policy_to_read_allows_no_change() -> None:
    policy = session_policy("aws-cn", "b", "t", "read")
    assert policy_allows(policy, "s3:GetObject", "arn:aws-cn:s3:::b/t/x")
    for action in ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
        assert not policy_allows(policy, action, "arn:aws-cn:s3:::b/t/x")


@pytest.mark.parametrize("path", ["root/1_t", "a b/w$t", 'quoted"/\\x', "it's/été"])
def test_a_boundary_allows_one_directory(path: str) -> None:
    boundary = access_boundary("b", path, "write").to_json()
    for permission in ("get", "create", "delete"):
        assert boundary_allows(boundary, "b", permission, f"{path}/data/x.lance")
        assert not boundary_allows(boundary, "b", permission, f"{path}x/data/x.lance")
        assert not boundary_allows(boundary, "other", permission, f"{path}/data/x.lance")
    assert boundary_allows(boundary, "b", "list", prefix=f"{path}/_versions/")
    for outside in ("", path[:-1], f"{path}2/"):
        assert not boundary_allows(boundary, "b", "list", prefix=outside)
    reading = access_boundary("b", path, "read").to_json()
    assert boundary_allows(reading, "b", "get", f"{path}/x")
    assert not boundary_allows(reading, "b", "create", f"{path}/x")


@pytest.mark.parametrize(
    ("root", "options", "expected"),
    [
        ("/local", VendingOptions(role_arn=ROLE), "vended_role_arn: expected a root on S3"),
        ("s3://b/r", VendingOptions(role_arn="clients"), "vended_role_arn: expected arn:aws:iam::ACCOUNT:role/NAME"),
        ("s3://b/r", VendingOptions(sts_endpoint="https://sts"), "vended_sts_endpoint: expected vended_role_arn"),
        ("s3://b/r", VendingOptions(azure_sas=True), "vended_azure_sas: expected a root on Azure"),
        ("s3://b/r", VendingOptions(google_token=True), "vended_google_token: expected a root on Google Cloud Storage"),
        ("az://b/r", VendingOptions(azure_sas=True), "vended_azure_sas: expected the name of an account, and its key"),
        ("s3://b/r", VendingOptions(duration=timedelta(minutes=5)), "vended_seconds: expected 900 to 43200, found 300"),
        ("s3://b/r", VendingOptions(permission="own"), "vended_permission: expected read or write"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_do_not_fit(root: str, options: VendingOptions, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        open_vendor(root, {}, options)


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"google_skip_signature": "true"}, "expected an account of the server, found the option skip_signature"),
        ({"google_service_account": "/nowhere"}, "expected a service account among the options, found FileNotFound"),
        ({"google_service_account_key": '{"a": "hidden"}'}, "a service account among the options, found MalformedErr"),
    ],
)
def test_an_account_that_makes_no_tokens(storage: dict[str, str], expected: str) -> None:
    with pytest.raises(ValueError, match=expected) as raised:
        open_vendor("gs://b/r", storage, VendingOptions(google_token=True))
    assert "hidden" not in str(raised.value)


def test_google_tokens_need_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "namespace_server.credentials.google")
    monkeypatch.setitem(sys.modules, "google.oauth2", None)
    with pytest.raises(ValueError, match=r"google\.oauth2.* is missing; install lance-namespace-server\[gcs\]"):
        open_vendor("gs://b/r", {}, VendingOptions(google_token=True))


def test_in_process(tmp_path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none", **{"vended.region": "r"})
    from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, DescribeTableRequest

    namespace.create_namespace(CreateNamespaceRequest(id=["w"]))
    assert namespace.declare_table(DeclareTableRequest(id=["w", "t"])).storage_options == {"region": "r"}
    unwanted = DeclareTableRequest(id=["w", "u"], vend_credentials=False)
    assert namespace.declare_table(unwanted).storage_options is None
    described = namespace.describe_table(DescribeTableRequest(id=["w", "t"]))
    assert described.storage_options == {"region": "r"}
    unwanted_too = DescribeTableRequest(id=["w", "t"], vend_credentials=False)
    assert namespace.describe_table(unwanted_too).storage_options is None
    namespace.close()
