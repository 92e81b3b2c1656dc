"""Translations of branches beside main: answers have other spellings, and one that failed the status of a conflict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from namespace_server.rest.dialects.translation import Translation, present

_WORD: Final = re.compile("_([a-z])")
_SPELLED: Final = ("status", "code")
"""Fields whose values are names."""
_REFUSED: Final = ("failed", "not_implemented")


def in_camel_case(value: Any) -> Any:
    """A JSON value with the names of its fields as these clients spell them, and so the values that are names."""
    if isinstance(value, Mapping):
        return {
            _camel(name): _camel(each) if name in _SPELLED and isinstance(each, str) else in_camel_case(each)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [in_camel_case(each) for each in value]
    return value


def picked(answer: Any) -> object:
    """What became of a branch, with the version of main if there is a new one."""
    body = {name: answer[name] for name in ("status", "diff", "preview")}
    if answer["status"] == "cherry_picked":
        body["main_version_after"] = answer["version"]
    return in_camel_case(body)


def status_of_pick(answer: Any) -> int:
    """A branch that main cannot take is answered as a conflict, which the client has as a result."""
    return HTTPStatus.CONFLICT if answer["status"] in _REFUSED else HTTPStatus.OK


def _camel(name: str) -> str:
    return _WORD.sub(lambda found: found[1].upper(), name)


TRANSLATIONS: Final = {
    "diff_table_branch": Translation(body=present, answer=in_camel_case),
    "cherry_pick_table_branch": Translation(body=present, answer=picked, status=status_of_pick),
}
