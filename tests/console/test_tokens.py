"""Sign-in with a bearer token of an issuer."""

from __future__ import annotations

import time
from pathlib import Path

import httpx

from namespace_console.application import Console
from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.access_tokens import AccessTokens
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.issuer_keys import IssuerKeys
from tests.console.conftest import Visitor
from tests.running import serving
from tests.tokens.conftest import Clock, rules
from tests.tokens.issuer import issuing


def test_a_visitor_signs_in_with_a_token_until_it_expires(tmp_path: Path) -> None:
    wall = Clock(time.time())
    with issuing() as issuer:
        tokens = AccessTokens((rules(issuer),), wall, lambda each: IssuerKeys(each, Clock(1000.0)))
        namespace = DirectoryNamespace(root=str(tmp_path / "catalog"), durability="none")
        app = create_app(namespace, Authenticator({}, None, 0, tokens))
        app.mount("console", Console())
        token = issuer.token()
        with serving(app) as url, httpx.Client(base_url=url, verify=False) as http:
            visitor = Visitor(http)
            assert visitor.sign_in(f"{token[:-4]}AAAA", means="token").status_code == 401
            assert visitor.sign_in(token, means="key").status_code == 401
            assert visitor.sign_in(token, means="token").status_code == 303
            home = visitor.get("")
            assert home.status_code == 200
            assert "ann" in home.text
            assert token not in home.text
            wall.seconds += 7200
            ended = visitor.get("/log?table=a")
            assert ended.status_code == 303
            assert ended.headers["location"] == "/console/sign-in?next=%2Fconsole%2Flog%3Ftable%3Da"
