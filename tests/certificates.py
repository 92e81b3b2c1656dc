"""Certificates of an authority that nothing trusts."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files: an authority, and a certificate that it issued for 127.0.0.1 with its key."""

    authority: Path
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("tls"))


def issue(home: Path) -> Certificates:
    """A new authority and a new certificate, in the same files as before if there are some."""
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
