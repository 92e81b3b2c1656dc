"""What a screen gets and gives.

A screen is a function of a `Visit`. It reads through `visit.catalog`, which asks the server under the visitor's own
credentials, and gives what is shown: a `Page`, a way to go on (`Onward`), or bytes (`Content`). It lets errors of the
client through: `refusals` has a page for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from namespace_client.catalog import Catalog
from namespace_client.errors import InvalidCall, NotFound
from namespace_client.explanations import Explanation, explain
from namespace_client.http import CatalogServer, HttpClient
from namespace_client.wire import CallerIdentity, CatalogHead
from namespace_console.sessions import Cookies, Session

PLACE: Final = "/console"
_DIGITS: Final = 19


@dataclass(frozen=True, slots=True)
class Page:
    """A template and what it shows.

    Attributes:
        template: The template.
        title: Name of the page.
        shown: What it shows, by the names in the template.
        status: HTTP status.
        version: The catalog version that it shows, which it names; None for one that shows none.
        is_newest: Whether it shows the newest version wherever its address is pinned to: what it shows has no history.
    """

    template: str
    title: str
    shown: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    version: int | None = None
    is_newest: bool = False


@dataclass(frozen=True, slots=True)
class Onward:
    """A way to go on: the address of another page, as `Links` makes them; with cookies that the browser is to keep."""

    address: str
    cookies: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes of a known type that are no page. Browsers take them for nothing else, and keep them apart.

    Attributes:
        name: What it is, for errors.
        media_type: Its type.
        size: Number of bytes.
        read: Gives so many bytes from a place on, which are within it.
    """

    name: str
    media_type: str
    size: int
    read: Callable[[int, int], bytes]


Shown = Page | Onward | Content


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen: a name, the path of its pages below the console, and what shows it.

    Attributes:
        name: What links call it.
        path: Template of its path: `/table/{table}`. Parameters are whole segments.
        show: Shows it: for GET, which changes nothing.
        change: Makes the change that its form asks for: for POST. None where it has none.
        label: Its name in the navigation, None if it is not there.
        part_of: The screen in the navigation that it belongs to, None if it is there itself, or belongs to none.
        open: Whether it is shown without a sign-in.
    """

    name: str
    path: str
    show: Callable[[Visit], Shown]
    change: Callable[[Visit], Shown] | None = None
    label: str | None = None
    part_of: str | None = None
    open: bool = False


class Links:
    """Addresses of pages by the names of their screens.

    Attributes:
        at: The catalog version that the pages are pinned to, None if they show the newest.
    """

    def __init__(self, paths: Mapping[str, str], at: int | None = None) -> None:
        self._paths = paths
        self.at = at

    def __contains__(self, screen: str) -> bool:
        return screen in self._paths

    def __call__(self, screen: str, *parts: object, **query: object) -> str:
        """The address of a page of a screen, with the parameters of its path in order, and those of a query.

        A parameter that is None or empty is left out. `at` is kept, unless it is given; `at=None` is for the newest.
        """
        first, *others = _literals(self._paths[screen])
        path = first + "".join(quote(str(part), safe="") + text for part, text in zip(parts, others, strict=True))
        given = {"at": self.at, **query}
        wanted = {name: value for name, value in given.items() if value is not None and value != ""}
        return f"{PLACE}{path}" + (f"?{urlencode(wanted)}" if wanted else "")


@cache
def _literals(path: str) -> Sequence[str]:
    """What is around the parameters of the path of a screen."""
    return re.split(r"\{\w+\}", path)


@dataclass(frozen=True)
class Visit:
    """A request of a visitor.

    Attributes:
        screen: The name of the screen.
        catalog: The catalog, asked as the visitor. Its methods that open files of tables in this process are not for
            screens: they would go around the visitor's grants.
        client: The same connection, for routes that the catalog has no method for.
        session: What the visitor's cookies say.
        cookies: The names of the visitor's cookies, for what signs in.
        path: Parameters of the path.
        query: Parameters of the query; of one that is there several times the last.
        form: Fields of the form, of a POST.
        links: Addresses of pages that are pinned as this one is.
        address: Path and query of this page, as they were sent.
        connect: Connects to the server as the visitor of another session.
        is_fragment: Whether a script asks, for a part of the page.
    """

    screen: str
    catalog: Catalog
    client: HttpClient
    session: Session
    cookies: Cookies
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str]
    links: Links
    address: str
    connect: Callable[[Session], CatalogServer]
    is_fragment: bool = False

    @property
    def at(self) -> int | None:
        """The catalog version that the page is pinned to, None if it shows the newest."""
        return self.links.at

    @cached_property
    def head(self) -> CatalogHead:
        """Root and newest version of the catalog. The first use is one request."""
        return self.catalog.access.state()

    @cached_property
    def version(self) -> int:
        """The catalog version that the page shows: all that is read for it is read at this one.

        Raises `NotFound` for a page that is pinned to one that has not been made.
        """
        if self.at is not None and self.at > self.head.version:
            raise missing(f"catalog version {self.at}")
        return self.head.version if self.at is None else self.at

    def page(self, template: str, title: str, **shown: object) -> Page:
        """A page of the catalog version that is read, which it names."""
        return Page(template, title, shown, version=self.version)

    def newest_page(self, template: str, title: str, **shown: object) -> Page:
        """A page of what has no history: it shows that of the newest catalog version, which it names."""
        return Page(template, title, shown, version=self.head.version, is_newest=True)

    def address_at(self, version: int | None) -> str:
        """The address of this page at a catalog version; None: at the newest."""
        parts = urlsplit(self.address)
        query = [(name, value) for name, value in parse_qsl(parts.query) if name != "at"]
        query += [] if version is None else [("at", str(version))]
        return parts.path + (f"?{urlencode(query)}" if query else "")

    def caller_with(self, session: Session) -> CallerIdentity:
        """Who the server takes a visitor with another session for. Raises `AccessRefused` as the server does."""
        with self.connect(session) as server:
            return server.caller()

    def number(self, name: str, most: int | None = None) -> int | None:
        """A parameter of the query as a whole number from 0 on, None if it is not given. Raises `InvalidCall`."""
        return whole_number(name, self.query.get(name, ""), most)

    def text(self, name: str) -> str | None:
        """A parameter of the query without spaces around it, None if it is not given or empty."""
        return self.query.get(name, "").strip() or None


def missing(what: str) -> NotFound:
    """What a screen raises for what is not there: the page is the one for what is hidden."""
    return NotFound(f"{what}: expected what the catalog has, found none", code=None)


def whole_number(name: str, given: str, most: int | None = None) -> int | None:
    """A whole number from 0 on, up to `most`; None for no text. Raises `InvalidCall`."""
    text = given.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS) or (most is not None and int(text) > most):
        to = " on" if most is None else f" to {most:,}"
        raise InvalidCall(f"{name}: expected a whole number from 0{to}, found {text[:40]!r}")
    return int(text)


_TITLES: Final = {
    400: "This cannot be done as it was asked for",
    401: "Sign in",
    403: "This is not allowed",
    404: "There is no such page",
    405: "This cannot be sent here",
    409: "The catalog has changed meanwhile",
    410: "This is not kept any more",
    413: "This is too long",
    429: "Too much at once",
    500: "This could not be shown",
    502: "The catalog did not answer",
    503: "The catalog cannot do this now",
}


def refusal(status: int, text: str, advice: str = "") -> Page:
    """The page of a refusal of the console itself: a text of thing, expectation and finding, and what to do."""
    told = explain(text)
    return told_page(status, replace(told, advice=advice))


def told_page(status: int, told: Explanation, title: str | None = None) -> Page:
    """The page of an error."""
    return Page("refusal.html", title or _TITLES.get(status, "This could not be done"), {"told": told}, status)


def told_fragment(status: int, told: Explanation) -> Page:
    """An error as what a script puts into a page."""
    return Page("refusal_part.html", _TITLES.get(status, "This could not be done"), {"told": told}, status)
