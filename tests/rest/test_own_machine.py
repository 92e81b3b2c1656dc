"""Addresses of this machine: one rule for issuers of tokens, logins, hosts of a server and its peers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from lance_core.own_machine import is_loopback, is_secure, may_be_loopback
from namespace_client import InvalidCall
from namespace_client.logins import Login
from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.rest.middleware import local_hosts
from namespace_server.rest.principals import TokenIssuer

SURE = ["localhost", "127.0.0.1", "127.9.9.9", "::1"]
POSSIBLE = [
    *("x.localhost", "localhost.", "x.localhost.", "127.0.0.1.", "0.0.0.0", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"),
    *("127.1", "0", "2130706433", "0x7f.1", "0177.0.0.1"),
]
OTHER = [
    *("", "localhost.example", "my-localhost", "127.0.0.1.example", "128.0.0.1", "192.0.2.1", "2001:db8::1"),
    *("::ffff:192.0.2.1", "10.1", "machine", "256.0.0.1"),
]
HOSTS = [*((host, True, True) for host in SURE), *((host, False, True) for host in POSSIBLE)]
HOSTS += [(host, False, False) for host in OTHER]


def _url(host: str, scheme: str = "http") -> str:
    return f"{scheme}://[{host}]:1" if ":" in host else f"{scheme}://{host}:1"


@pytest.mark.parametrize(("host", "surely", "possibly"), HOSTS)
def test_a_host_is_this_machine_surely_possibly_or_not(host: str, *, surely: bool, possibly: bool) -> None:
    assert (is_loopback(host), may_be_loopback(host)) == (surely, possibly)
    assert bool(local_hosts(host)) == surely
    if host:
        assert is_secure(_url(host)) == surely
        assert not is_secure(_url(host, "ftp"))


@pytest.mark.parametrize("host", [*POSSIBLE, *OTHER[1:]])
def test_no_token_goes_where_others_may_read_it(host: str) -> None:
    url = _url(host)
    with pytest.raises(InvalidCall, match="expected https; http is for addresses of this machine"):
        Login(url, "client").begun(print)
    with pytest.raises(ValidationError, match="expected https; http is for addresses of this machine"):
        TokenIssuer(issuer=url, audience="a")


@pytest.mark.parametrize("url", ["ftp://localhost", "//localhost", "localhost:1", "https://", "http://["])
def test_no_token_goes_by_another_scheme_or_to_no_host(url: str) -> None:
    assert not is_secure(url)
    with pytest.raises(InvalidCall, match="expected https"):
        Login(url, "client").begun(print)


@pytest.mark.parametrize(("host", "possibly"), [(host, possibly) for host, _, possibly in HOSTS])
def test_an_address_that_may_be_of_each_machine_is_proved_to_processes_of_one(host: str, *, possibly: bool) -> None:
    here, there = PeerSecret("a secret of servers", lambda: "here"), PeerSecret("a secret of servers", lambda: "there")
    proof = here.proof("instance", _url(host), "catalog")
    assert here.is_proof(proof, "instance", _url(host), "catalog")
    assert there.is_proof(proof, "instance", _url(host), "catalog") == (not possibly)
