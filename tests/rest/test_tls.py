"""The server behind its own TLS."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from namespace_server.serving import ServingOptions
from tests.rest.conftest import EchoCatalog, RunningServer


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files: an authority, and a certificate that it issued for 127.0.0.1 with its key."""

    authority: Path
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    home = tmp_path_factory.mktemp("tls")
    issuer_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])

    def builder(name: x509.Name, public_key: Any, is_authority: bool) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )

    authority = builder(issuer, issuer_key.public_key(), True).sign(issuer_key, hashes.SHA256())
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        builder(subject, key.public_key(), False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    found = Certificates(home / "authority.pem", home / "certificate.pem", home / "key.pem")
    found.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    found.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    found.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return found


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
