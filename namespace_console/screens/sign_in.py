"""Sign-in and sign-out."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from namespace_client.errors import AccessRefused, InvalidCall
from namespace_client.explanations import explain_error, status_of_error
from namespace_console.sessions import Means, Session, is_sendable
from namespace_console.visits import PLACE, Onward, Page, Shown, Visit

_MEANS: Final[dict[str, Means]] = {"key": "key", "token": "token"}


def show(visit: Visit) -> Shown:
    """The form, or who the visitor is."""
    return _page(visit)


def sign_in(visit: Visit) -> Shown:
    """Check a credential, and have the browser keep it."""
    means = _MEANS.get(visit.form.get("means", ""))
    if means is None:
        raise InvalidCall("means: expected `key` or `token`, found something else")
    given = Session(visit.session.nonce, means, visit.form.get("credential", "").strip())
    if not is_sendable(given.credential):
        return _page(visit, InvalidCall("the credential: expected visible ASCII characters, found none or others"))
    try:
        caller = visit.caller_with(given)
    except AccessRefused as error:
        return _page(visit, error)
    if caller.means == "none":
        return _page(visit, InvalidCall("the credential: expected none, since this server knows no callers, found one"))
    try:
        cookie = visit.cookies.session(replace(given, principal=caller.principal or ""))
    except ValueError as error:
        return _page(visit, InvalidCall(f"the credential: {error}"))
    _nonce, renewed = visit.cookies.nonce()
    return Onward(own_address(visit.form.get("next")) or visit.links("home"), (cookie, renewed))


def sign_out(visit: Visit) -> Shown:
    """Have the browser forget the credential."""
    _nonce, renewed = visit.cookies.nonce()
    return Onward(visit.links("sign-in"), (visit.cookies.ended(), renewed))


def own_address(given: str | None) -> str | None:
    """An address if it is one of this console, else None: what leads elsewhere is not followed."""
    if not given or not (given == PLACE or given.startswith((f"{PLACE}/", f"{PLACE}?"))):
        return None
    is_plain = given.isascii() and given.isprintable() and "\\" not in given and " " not in given
    parts = urlsplit(given)
    return given if is_plain and not parts.scheme and not parts.netloc else None


def _page(visit: Visit, error: AccessRefused | InvalidCall | None = None) -> Page:
    asked = visit.form.get("next") or visit.query.get("next")
    shown = {
        "next": own_address(asked),
        "told": None if error is None else explain_error(error),
        "means": visit.form.get("means", "key"),
    }
    return Page("sign_in.html", "Sign in", shown, 200 if error is None else status_of_error(error))
