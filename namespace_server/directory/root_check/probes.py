"""Probes of a root: its permissions, and whether its reads and listings have every write at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from lance_core.errors import NotFound, PreconditionFailed, StorageError
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.directory.root_check.report import RootFinding, told_by
from namespace_server.directory.root_check.workspace import Workspace
from namespace_server.directory.writable import check_parent, check_root

_ROUNDS: Final = 3
_NAMES: Final = ("B", "a b", "a%2Fb", "a+b", "a-b", "a.b", "a/b", "a/b-c", "z", "é")
"""Names whose order, or whose characters, gateways get wrong."""
_FIRST: Final = b"first"
_SECOND: Final = b"the second"


def check_place(store: ObjectStore) -> Iterator[RootFinding]:
    """A directory is there. Writes nothing: a mistyped path must not make one."""
    if not isinstance(store.innermost, LocalStore):
        return
    root = Path(store.innermost.root)
    if (error := _error_of(partial(check_root, store))) is not None:
        yield RootFinding("root-unusable", told_by(error))
    elif not root.exists() and (error := _error_of(partial(check_parent, root))) is not None:
        yield RootFinding("root-unusable", f"{root}: expected a directory, found that {told_by(error)}")
    elif not root.exists():
        text = f"{root}: expected a directory, found none; nothing was made or checked. The first commit of a server"
        yield RootFinding("root-missing", f"{text} would make it in {root.parent}, which is there and can be written")


def check_access(store: ObjectStore, work: Workspace) -> Iterator[RootFinding]:
    """Objects can be written, read, listed and deleted, and a vacant key is answered unlike one that is unreadable."""
    key, vacant = work.key("access"), work.key("vacant")
    looks: dict[str, Callable[[], object]] = {
        "write-refused": partial(store.put, key, _FIRST),
        "absence-untold": partial(store.find, vacant),
        "list-refused": lambda: list(store.list(work.directory)),
        "delete-refused": partial(store.delete, vacant),
    }
    errors = dict(zip(looks, store.map(_error_of, list(looks.values())), strict=True))
    if all(errors.values()):
        yield RootFinding("unreachable", f"expected that the store answers, found {told_by(errors['list-refused'])}")
        return
    if errors["write-refused"] is None:
        errors["read-refused"] = _error_of(partial(store.get, key))
        errors["delete-refused"] = errors["delete-refused"] or _error_of(partial(store.delete, key))
    expected = {
        "write-refused": "an object can be written",
        "read-refused": "an object can be read",
        "absence-untold": "a key that holds nothing is answered so",
        "list-refused": "a directory can be listed",
        "delete-refused": "an object can be deleted",
    }
    for code, text in expected.items():
        if (error := errors.get(code)) is not None:
            yield RootFinding(code, f"expected that {text}, found {told_by(error)}")


def check_reads(store: ObjectStore, work: Workspace) -> Iterator[RootFinding]:
    """A read sees the last write, replacement or removal at once."""
    keys = [work.key(f"read/{number}") for number in range(_ROUNDS)]
    wrong = [text for text in store.map(partial(_differing_read, store), keys) if text is not None]
    if wrong:
        yield RootFinding("read-differs", wrong[0])


def _differing_read(store: ObjectStore, key: str) -> str | None:
    for what, data in (("written", _FIRST), ("replaced", _SECOND), ("removed", None), ("written again", _FIRST)):
        if data is None:
            store.delete(key)
            found: tuple[bytes | None, int | None] = store.find(key), None
        else:
            store.put(key, data)
            try:
                body, meta = store.get_with_meta(key)
                found = body, meta.size
            except NotFound:
                found = None, None
        expected = data, None if data is None else len(data)
        if found != expected:
            return (
                f"an object that was {what}: expected that it is read at once as {_shown(expected)}, "
                f"found {_shown(found)}"
            )
    return None


def _shown(read: tuple[bytes | None, int | None]) -> str:
    body, size = read
    return "nothing" if body is None else f"{body!r} of {size} bytes"


def check_listing(store: ObjectStore, work: Workspace) -> Iterator[RootFinding]:
    """A listing has new objects at once, and not deleted ones; in byte order, also from a key on."""
    for number in range(_ROUNDS):
        directory = f"{work.directory}/list/{number}"
        keys = sorted((work.key(f"list/{number}/{name}") for name in _NAMES), key=str.encode)
        store.map(lambda key: store.put(key, _FIRST), keys)
        found = list(_compare(store, directory, "were written", dict.fromkeys(keys, len(_FIRST))))
        if not found:
            replaced, removed = keys[::2], keys[1::2]
            store.map(lambda key: store.put(key, _SECOND), replaced)
            store.map(store.delete, removed)
            found = list(_compare(store, directory, "were replaced or deleted", dict.fromkeys(replaced, len(_SECOND))))
        if found:
            yield from found
            return


def _compare(store: ObjectStore, directory: str, what: str, expected: dict[str, int]) -> Iterator[RootFinding]:
    """Compare listings of a directory with the keys and sizes that are expected, in byte order."""
    keys = list(expected)
    middle = keys[len(keys) // 2]
    listed = {meta.path: meta.size for meta in store.list(directory)}
    if listed != expected:
        text = f"after objects {what}: expected that a listing shows it at once, found {_difference(expected, listed)}"
        yield RootFinding("listing-differs", text)
        return
    if list(listed) != keys:
        yield RootFinding("listing-order", f"expected {_names(keys)}, found {_names(list(listed))}")
        return
    later = [meta.path for meta in store.list(directory, start_after=middle)]
    if later != keys[keys.index(middle) + 1 :]:
        wanted = _names(keys[keys.index(middle) + 1 :])
        yield RootFinding("listing-order", f"from {_names([middle])} on: expected {wanted}, found {_names(later)}")
    first = store.first(directory)
    if first is None or first.path != keys[0]:
        there = "nothing" if first is None else _names([first.path])
        yield RootFinding("listing-order", f"the first key: expected {_names(keys[:1])}, found {there}")


def _difference(expected: dict[str, int], listed: dict[str, int]) -> str:
    missing, surplus = expected.keys() - listed.keys(), listed.keys() - expected.keys()
    parts = [f"{_names(sorted(keys))} {text}" for keys, text in ((missing, "missing"), (surplus, "too many")) if keys]
    return ", ".join(parts) or "old sizes"


def _names(keys: Sequence[str]) -> str:
    """Keys as a finding shows them: their names only."""
    return ", ".join(repr(key.partition("/list/")[2].partition("/")[2]) for key in keys) or "nothing"


def check_conditional_delete(store: ObjectStore, work: Workspace) -> Iterator[RootFinding]:
    """An object is removed only under its e_tag."""
    key = work.key("delete")
    store.put(key, _FIRST)
    old = store.head(key).e_tag
    store.put(key, _SECOND)
    expected = "a delete under the e_tag of an earlier object: expected that the object stays"
    error = _error_of(partial(store.delete_if, key, if_match=old))
    if error is None:
        yield RootFinding("no-conditional-delete", f"{expected}, found that it was removed")
    elif not isinstance(error, PreconditionFailed):
        yield RootFinding("no-conditional-delete", f"{expected}, found that the store refuses it: {told_by(error)}")
    else:
        error = _error_of(partial(store.delete_if, key, if_match=store.head(key).e_tag))
        if error is not None or store.find(key) is not None:
            text = "a delete under the e_tag of the object: expected that it is removed, found"
            yield RootFinding("no-conditional-delete", f"{text} {told_by(error) if error else 'it'}")


def check_copy(store: ObjectStore, work: Workspace) -> Iterator[RootFinding]:
    """The store copies an object."""
    source, target = work.key("source"), work.key("copy")
    store.put(source, _SECOND)
    error = _error_of(partial(store.copy, source, target))
    if error is not None:
        yield RootFinding("copy-refused", f"expected that the store copies an object, found {told_by(error)}")
    elif store.find(target) != _SECOND:
        yield RootFinding("copy-refused", "expected that a copy has the bytes of its source, found others")


def _error_of(call: Callable[[], object]) -> StorageError | None:
    try:
        call()
    except StorageError as error:
        return error
    return None
