"""The uploads in parts of a root (`namespace_server.data.multipart`), as objects below `_staging/uploads/`.

    <upload uuid>/upload              JSON: the principal, and the location and branch of the table
    <upload uuid>/part-<part id>      JSON: the transaction of a part, and what its request said
    <upload uuid>/end                 `completed` or `aborted`

Each is written once, if its key is vacant, and never changed. They are removed as garbage, by their age. An answer that
is lost is found again: an object that has the bytes of this attempt is this attempt's.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast, get_args

import orjson
from google.protobuf.message import DecodeError

from lance_core.errors import AlreadyExists, CorruptFile, NotFound, StorageUnknown
from lance_core.format.decoding import decode_message
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.data.multipart import End, StoredUpload, UploadBinding, UploadedPart
from namespace_server.directory.model.requests import RequestRules, location_key
from namespace_server.directory.model.root_layout import UPLOADS, upload_key
from table_data.batch_operations import TransactionCommit, operation_json

_UPLOAD: Final = "upload"
_END: Final = "end"
_PART: Final = "part-"


class MultipartUploads:
    """The uploads of the root of a store. Blocking; thread-safe. What it writes is durable. Ids of uploads are UUIDs.

    Raises `StorageError`, `StorageUnknown` where something may be written or not, and `CorruptFile`.
    """

    def __init__(self, store: ObjectStore, rules: RequestRules) -> None:
        self._store = store
        self._rules = rules

    def begin(self, upload: UploadBinding) -> str:
        """Write a new upload; its id, which cannot be guessed."""
        upload_id = str(uuid.uuid4())
        key = location_key(upload.location, self._rules)
        written = {"principal": upload.principal, "location": key, "branch": upload.branch}
        self._store.put_if_absent(upload_key(upload_id, _UPLOAD), orjson.dumps(written))
        return upload_id

    def find(self, upload_id: str, *, parts: bool = False) -> StoredUpload | None:
        """An upload, with its `parts` if they are asked for; None if there is none. Its end is looked for first."""
        ended = self._store.find(upload_key(upload_id, _END))
        try:
            data, meta = self._store.get_with_meta(upload_key(upload_id, _UPLOAD))
        except NotFound:
            return None
        known = _object(meta.path, data)
        location = self._store.object_uri(_text(meta.path, known, "location"))
        upload = UploadBinding(known.get("principal"), location, known.get("branch"))
        end = None if ended is None else _end(upload_key(upload_id, _END), ended)
        return StoredUpload(
            upload,
            datetime.now(UTC) - meta.last_modified,
            end,
            self._parts(upload_id, location) if parts else {},
        )

    def keep(self, upload_id: str, part_id: str, part: UploadedPart) -> UploadedPart:
        """Write a part, unless there is one with the id; the one that has it."""
        commit = None if part.commit is None else operation_json(part.commit)["commit_transaction"]
        if commit is not None:
            commit["location"] = location_key(commit["location"], self._rules)
        written = {"mode": part.mode, "rows_sha256": part.rows_sha256, "num_rows": part.num_rows, "commit": commit}
        key, data = upload_key(upload_id, _PART + part_id), orjson.dumps(written)
        there = self._write_once(key, data)
        return part if there == data else self._part(key, there)

    def end(self, upload_id: str, end: End) -> End:
        """End an upload, unless it has ended; how it has."""
        key = upload_key(upload_id, _END)
        return _end(key, self._write_once(key, end.encode()))

    def _write_once(self, key: str, data: bytes) -> bytes:
        """Write an object unless there is one; the bytes that it has then.

        After an answer that was lost only an object that is there is an answer. Raises `StorageUnknown` without one.
        """
        try:
            self._store.put_if_absent(key, data)
        except (AlreadyExists, StorageUnknown):
            there = self._store.find(key)
            if there is None:
                raise StorageUnknown(f"{self._store.uri}/{key}: perhaps written, and not there yet") from None
            return there
        return data

    def _parts(self, upload_id: str, location: str) -> Mapping[str, UploadedPart]:
        """The parts that are there now, by their ids."""
        directory = f"{UPLOADS}/{upload_id}"
        names = sorted(name for name in self._store.names(directory) if name.startswith(_PART))
        keys = [f"{directory}/{name}" for name in names]
        found = [self._part(key, data) for key, data in zip(keys, self._store.map(self._store.get, keys), strict=True)]
        for key, part in zip(keys, found, strict=True):
            if part.commit is not None and part.commit.location != location:
                raise _damaged(key, f"expected a part of {location}, found one of {part.commit.location}")
        return {name.removeprefix(_PART): part for name, part in zip(names, found, strict=True)}

    def _part(self, key: str, data: bytes) -> UploadedPart:
        known = _object(key, data)
        commit = known.get("commit")
        return UploadedPart(
            _text(key, known, "mode"),
            _text(key, known, "rows_sha256"),
            cast("int", known.get("num_rows", 0)),
            None if commit is None else self._commit(key, commit),
        )

    def _commit(self, key: str, written: Mapping[str, Any]) -> TransactionCommit:
        try:
            encoded = base64.b64decode(_text(key, written, "transaction"), validate=True)
            transaction = decode_message(pb.Transaction, encoded)
        except (binascii.Error, DecodeError) as error:
            raise _damaged(key, f"expected a Lance Transaction ({error})") from error
        return TransactionCommit(
            tuple(written["id"]),
            transaction,
            written.get("branch"),
            written.get("stable_row_ids", False),
            written.get("data_storage_version"),
            self._store.object_uri(_text(key, written, "location")),
            written.get("manifest_sha256"),
        )


def find_ended_uploads(store: ObjectStore, horizon: datetime) -> Iterator[ObjectMeta]:
    """The objects of uploads of which each was written before the horizon: no upload takes so long. One listing.

    They go together: a completion that comes while some are gone finds less parts than were answered. Then the files of
    all parts are from before the horizon, and none of them is committed (G2).
    """
    uploads: dict[str, list[ObjectMeta]] = {}
    for meta in store.list(UPLOADS):
        uploads.setdefault(meta.path.rpartition("/")[0], []).append(meta)
    for objects in uploads.values():
        if all(meta.last_modified < horizon for meta in objects):
            yield from objects


def _object(key: str, data: bytes) -> Mapping[str, Any]:
    try:
        known = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _damaged(key, f"expected JSON ({error})") from error
    if not isinstance(known, dict):
        raise _damaged(key, "expected a JSON object")
    return known


def _text(key: str, known: Mapping[str, Any], name: str) -> str:
    found = known.get(name)
    if not isinstance(found, str):
        raise _damaged(key, f"{name}: expected a text, found {found!r:.80}")
    return found


def _end(key: str, data: bytes) -> End:
    text = data.decode(errors="replace")
    if text not in get_args(End):
        raise _damaged(key, f"expected one of {', '.join(get_args(End))}, found {text[:80]!r}")
    return cast("End", text)


def _damaged(key: str, reason: str) -> CorruptFile:
    return CorruptFile(f"{key}: {reason}", key=key, reason=reason)
