"""The actions of an AlterTransactionRequest as typed changes; form is checked, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from lance_namespace.errors import InvalidInputError

from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.notes import OWN_PROPERTIES, SUCCEEDED, NoteChange, SetNote, UnsetNote
from namespace_server.directory.model.request_fields import Request, check_known, choice, located, names, objects, text


def note_changes(request: Request, limits: Limits) -> tuple[NoteChange, ...]:
    """The actions of an AlterTransactionRequest. The status of a transaction that is committed stays.

    Raises InvalidInputError (13) for another status, a name that the server uses itself, or an unknown mode.
    """
    parsed: list[NoteChange] = []
    items = objects(request, "actions")
    limits.check_operations(len(items), "actions")
    for index, item in enumerate(items):
        given = [name for name, value in item.items() if value is not None]
        place = f"actions[{index}]"
        if len(given) != 1 or given[0] not in _ACTIONS:
            raise InvalidInputError(f"{place}: expected exactly one of {', '.join(_ACTIONS)}; found {names(given)}")
        body = item[given[0]]
        if not isinstance(body, Mapping):
            raise InvalidInputError(f"{place}.{given[0]}: expected an object, found {shown(body)}")
        try:
            read, known = _ACTIONS[given[0]]
            check_known(body, known, "action")
            change = read(body)
        except InvalidInputError as error:
            raise located(f"{place}.{given[0]}", error) from None
        if change is not None:
            parsed.append(change)
    return tuple(parsed)


def _set_status(action: Request) -> None:
    wanted = text(action, "status", required=True) or ""
    known = {name.lower(): name for name in _STATUSES}
    status = known.get(wanted.replace("_", "").lower())
    if status is None:
        raise InvalidInputError(f"status: expected one of {', '.join(_STATUSES)}; found {shown(wanted)}")
    if status != SUCCEEDED:
        raise InvalidInputError(f"status: a transaction that can be named is committed: it is Succeeded, not {status}")


def _set_property(action: Request) -> SetNote:
    value = text(action, "value", required=True) or ""
    choices: dict[str, Literal["overwrite", "fail", "skip"]] = {
        "overwrite": "overwrite",
        "fail": "fail",
        "skip": "skip",
    }
    return SetNote(_note_key(action), value, choice(action, "mode", choices, "overwrite"))


def _unset_property(action: Request) -> UnsetNote:
    choices: dict[str, Literal["fail", "skip"]] = {"skip": "skip", "fail": "fail"}
    return UnsetNote(_note_key(action), choice(action, "mode", choices, "skip"))


def _note_key(action: Request) -> str:
    key = text(action, "key", required=True) or ""
    if not key:
        raise InvalidInputError("key: expected at least one character, found none")
    if key in OWN_PROPERTIES:
        raise InvalidInputError(f"key: {key} is a property of the transaction itself, which cannot be changed")
    return key


_STATUSES: Final = ("Queued", "Running", SUCCEEDED, "Failed", "Canceled")
_ACTIONS: Final[Mapping[str, tuple[Callable[[Request], NoteChange | None], frozenset[str]]]] = {
    "setStatusAction": (_set_status, frozenset({"status"})),
    "setPropertyAction": (_set_property, frozenset({"key", "value", "mode"})),
    "unsetPropertyAction": (_unset_property, frozenset({"key", "mode"})),
}
