"""Templates: their filters, and how a page is made of one.

All that templates show is escaped. Texts of others (names, messages, cells) go through `text` and its like, which make
visible what hides, fold what is long, and keep the direction of a text to itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from lance_core.amounts import size
from namespace_client import display
from namespace_client.health import of_files, seconds
from namespace_client.names import Name
from namespace_console import pictures
from namespace_console.files import static_files
from namespace_console.visits import PLACE
from table_data.batch_operations import DELIMITER

_LONG_NAME: Final = 80
_LONG_TEXT: Final = 400


@cache
def environment() -> Environment:
    """The environment of all templates."""
    made = Environment(
        loader=PackageLoader("namespace_console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "text": text,
        "whole": whole,
        "name": name,
        "id": path_id,
        "dotted": dotted,
        "line": pictures.line,
        "when": when,
        "number": display.number,
        "signed": display.signed,
        "size": size,
        "ago": display.ago,
        "seconds": seconds,
        "of_files": of_files,
    }
    made.globals["static"] = static
    return made


def render(template: str, shown: Mapping[str, Any]) -> str:
    """A template with what it shows."""
    return environment().get_template(template).render(shown)


def static(file: str) -> str:
    """The address of a static file."""
    return f"{PLACE}/static/{static_files()[file].address}"


def text(value: object, most: int = _LONG_TEXT) -> Markup:
    """A text of others in a line, with its whole in a title where it is folded."""
    given = str(value)
    if len(given) <= most:
        return _apart(display.visible(given))
    shown = display.visible(display.folded(given, most))
    return Markup('<bdi title="{}">{}</bdi>').format(display.visible(display.folded(given, 4 * _LONG_TEXT)), shown)


def whole(value: object) -> Markup:
    """A text of others as it is, with its lines."""
    return _apart(display.visible(str(value), lines=True))


def _apart(shown: str) -> Markup:
    """A text whose direction is kept to itself."""
    return Markup(f"<bdi>{escape(shown)}</bdi>")  # noqa: S704 - as `Markup.format` does, in a tenth of the time


def name(value: Sequence[str] | None) -> Markup:
    """The dotted name of a namespace or table; that of the root is none."""
    return Markup("") if value is None else text(str(Name(value)), _LONG_NAME)


def dotted(value: Sequence[str]) -> str:
    """A name as it stands in fields of forms."""
    return str(Name(value))


def path_id(value: Sequence[str]) -> str:
    """A name as it stands in addresses of pages."""
    return DELIMITER.join(value)


@lru_cache(256)
def when(value: datetime | None) -> Markup:
    """A time, which programs can read as well."""
    if value is None:
        return Markup("")
    date, _, time = display.when_utc(value).partition(" ")
    return Markup('<time datetime="{}"><span>{}</span> <span>{}</span></time>').format(value.isoformat(), date, time)
