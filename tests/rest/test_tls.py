"""The server behind its own TLS."""

from __future__ import annotations

import shutil
import ssl
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from lance.namespace import RestNamespace
from lance_namespace import ListTablesRequest
from lance_namespace.errors import LanceNamespaceError

from namespace_client import Catalog, CatalogUnreachable, InvalidCall
from namespace_client.http import HttpClient
from namespace_server.serving import ServingOptions
from tests.certificates import Certificates, certificates, issue
from tests.rest.conftest import EchoCatalog, RunningServer

__all__ = ["certificates"]


@pytest.fixture
def server(serve: Any, certificates: Certificates) -> RunningServer:
    options = ServingOptions(port=0, tls_certificate=certificates.certificate, tls_key=certificates.key)
    return serve(EchoCatalog(), options=options)


def test_requests_are_served_over_tls_only(server: RunningServer, certificates: Certificates) -> None:
    assert server.url.startswith("https://127.0.0.1:")
    trusting = ssl.create_default_context(cafile=str(certificates.authority))
    assert httpx.get(f"{server.url}/v1/catalog", verify=trusting).status_code == 200
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{server.url}/v1/catalog", verify=ssl.create_default_context())
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{server.url.replace('https', 'http')}/v1/catalog")


def test_a_client_must_show_a_certificate_of_the_authority(serve: Any, certificates: Certificates) -> None:
    options = ServingOptions(
        port=0,
        tls_certificate=certificates.certificate,
        tls_key=certificates.key,
        tls_client_ca=certificates.authority,
    )
    url = serve(EchoCatalog(), options=options).url
    trusting = ssl.create_default_context(cafile=str(certificates.authority))
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/v1/catalog", verify=trusting)
    showing = ssl.create_default_context(cafile=str(certificates.authority))
    showing.load_cert_chain(certificates.certificate, certificates.key)
    assert httpx.get(f"{url}/v1/catalog", verify=showing).status_code == 200


@pytest.mark.parametrize("wrong", ["key", "certificate", "authority"])
def test_files_that_cannot_be_used_are_refused_at_the_start(
    serve: Any, certificates: Certificates, tmp_path: Path, wrong: str
) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    options = ServingOptions(
        port=0,
        tls_certificate=empty if wrong == "certificate" else certificates.certificate,
        tls_key=certificates.authority if wrong == "key" else certificates.key,
        tls_client_ca=empty if wrong == "authority" else None,
    )
    with pytest.raises(ValueError, match="pem"):
        serve(EchoCatalog(), options=options)


def test_clients_trust_the_authority_that_they_are_given(
    server: RunningServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = str(certificates.authority)
    with HttpClient(server.url, ca=ca)._client as client:
        assert client.get("/v1/catalog").status_code == 200
    with Catalog.connect(server.url) as catalog, pytest.raises(CatalogUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
        catalog.access.state()
    profiles = tmp_path / "lance-namespace" / "profiles.toml"
    profiles.parent.mkdir()
    profiles.write_text(f'[p]\nurl = "{server.url}"\nca = "company.pem"\n')
    shutil.copy(ca, profiles.parent / "company.pem")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def reached() -> Any:
        """A call of a server that answers what it was asked, which is no answer of a catalog."""
        return pytest.raises(CatalogUnreachable, match="not a response of a catalog server")

    for given in ({"ca": ca}, {"profile": "p"}):
        with Catalog.connect(None if "profile" in given else server.url, **given) as catalog, reached():
            catalog.access.state()
    monkeypatch.setenv("LANCE_NAMESPACE_CA", ca)
    with Catalog.connect(server.url) as catalog, reached():
        catalog.access.state()
    monkeypatch.delenv("LANCE_NAMESPACE_CA")
    (tmp_path / "none.pem").write_text("nothing")
    for wrong in ("/nowhere.pem", tmp_path / "none.pem"):
        with pytest.raises(InvalidCall, match=f"ca {wrong}: expected a PEM file of certificates"):
            Catalog.connect(server.url, ca=wrong)
    with pytest.raises(InvalidCall, match="takes no ca"):
        Catalog.connect(tmp_path, ca=ca)


def test_stock_clients_trust_the_authority_that_they_are_given(
    server: RunningServer, certificates: Certificates
) -> None:
    """As documented, and as `DatasetSource` renews storage options."""
    trusting = RestNamespace(uri=server.url, **{"tls.ssl_ca_cert": str(certificates.authority)})
    with pytest.raises(LanceNamespaceError, match="missing field `tables`"):  # of what it was answered
        trusting.list_tables(ListTablesRequest(id=[]))
    with pytest.raises(LanceNamespaceError, match="UnknownIssuer"):
        RestNamespace(uri=server.url).list_tables(ListTablesRequest(id=[]))


def test_a_renewed_certificate_is_served_without_a_restart(serve: Any, tmp_path: Path) -> None:
    """Requests go on meanwhile; files that do not fit together change nothing."""
    first = issue(tmp_path)
    options = ServingOptions(port=0, tls_certificate=first.certificate, tls_key=first.key)
    url = serve(EchoCatalog(), options=options).url
    trusting = ssl.create_default_context(cafile=str(first.authority))
    with httpx.Client(verify=trusting) as kept:
        assert kept.get(f"{url}/v1/catalog").status_code == 200
        good = first.key.read_bytes()
        first.key.write_bytes(first.certificate.read_bytes())
        time.sleep(1.5)  # a look of the server
        assert httpx.get(f"{url}/v1/catalog", verify=trusting).status_code == 200
        first.key.write_bytes(good)
        renewed = issue(tmp_path)
        then = ssl.create_default_context(cafile=str(renewed.authority))
        for _ in range(100):
            try:
                assert httpx.get(f"{url}/v1/catalog", verify=then).status_code == 200
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        else:
            pytest.fail("the new certificate is not served")
        # Connections with the old one are ended; new ones of that client do not trust the new one.
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/v1/catalog", verify=trusting)
