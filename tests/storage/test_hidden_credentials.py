"""No text shows a user, a password, a signed query or a key of an address."""

from __future__ import annotations

import time

import pytest

from lance_core.hidden_credentials import without_credentials

SECRET = "sEcReT0123+x"
ADDRESSES = [
    f"s3://user:{SECRET}@bucket/x",
    f"S3://user:{SECRET}@bucket/x",
    f"s3://:{SECRET}@bucket",
    f"s3://{SECRET}@bucket",
    f"https://user:a/{SECRET}/b@host/path",
    f"https://user:a@{SECRET}@host/path",
    f"https://user:12/{SECRET}@host/path",
    f"abfss://container:{SECRET}@account.dfs.core.windows.net/p",
    f"postgresql+psycopg://user:{SECRET}@db.example.org/x",
    f"//user:{SECRET}@host/x",
    f"https%3A%2F%2Fuser:{SECRET}@host/x",
    f"https%3a%2f%2fuser:{SECRET}@host/x",
    f"https://a.blob.core.windows.net/c/x?sv=1&sig={SECRET}&se=2",
    f"az://container/x?{SECRET}",
    f"https://bucket.s3.amazonaws.com/x?X-Amz-Algorithm=A&X-Amz-Signature={SECRET}",
    f"https://storage.googleapis.com/b/x?X-Goog-Signature={SECRET}",
    f"x?X-Amz-Signature={SECRET}",
    f"x?x-amz-security-token%3D{SECRET}",
    f"AccountName=a;AccountKey={SECRET};EndpointSuffix=x",
    f"aws_secret_access_key={SECRET}",
    f"Authorization: Bearer {SECRET}{SECRET}",
    f"Authorization: Basic {SECRET}{SECRET}",
]
PLAIN = [
    "",
    "table a$b does not exist",
    "abfss://container@account.dfs.core.windows.net/p",
    "https://host:8080/a",
    "https://[::1]:8080/a",
    "s3://bucket/00000000_a$b@c",
    "no grant of read to https://issuer.example.org#alice@example.org",
    "filter: expected x = 1 or y//2 = 3",
    "mail@example.org and a//b",
    "page_token=abc, limit=3",
    "token: expected one, found none",
    "https://host/three.csv?…: expected a file",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    "form", ["{}", "table t: location '{}' lies outside the root", 'found "{}", then {} again', "<{}>"]
)
def test_a_secret_is_not_in_a_text(address: str, form: str) -> None:
    shown = without_credentials(form.replace("{}", address))
    assert SECRET not in shown
    assert "…" in shown
    assert without_credentials(shown) == shown


@pytest.mark.parametrize("password", [f"with space {SECRET}", f"it's {SECRET}", f'"{SECRET}"', f"a/b {SECRET}"])
def test_a_value_may_have_any_password(password: str) -> None:
    assert without_credentials(f"s3://user:{password}@bucket/x", is_value=True) == "s3://…@bucket/x"


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts_stay(text: str) -> None:
    assert without_credentials(text) == text


@pytest.mark.parametrize(
    "text",
    ["//a:" * 50_000, "http://" * 50_000, "//x" * 50_000 + "@", "sig=" * 50_000, "//" + ":@" * 50_000, "?" * 99_999],
)
def test_a_long_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    without_credentials(text)
    without_credentials(text, is_value=True)
    assert time.process_time() - began < 2
