"""The server behind its own TLS."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest

from namespace_server.serving import ServingOptions
from tests.certificates import Certificates, certificates
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
