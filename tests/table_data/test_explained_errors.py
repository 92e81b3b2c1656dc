"""Errors of storage and of the engine, as the caller of an operation gets them."""

import pytest

from lance_core.errors import (
    CorruptFile,
    InvalidTransaction,
    LanceCoreError,
    NotFound,
    StorageError,
    StorageUnknown,
    UnsupportedFeature,
)
from table_data.errors import ClientError, InvalidCall, VersionGone, WorkFailed
from table_data.pylance_errors import explained


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StorageError("the disk is full"), WorkFailed),
        (StorageUnknown("no answer"), WorkFailed),
        (CorruptFile("not a manifest"), WorkFailed),
        (NotFound("gone"), VersionGone),
        (UnsupportedFeature("overlays"), InvalidCall),
        (InvalidTransaction("row 7"), InvalidCall),
    ],
)
def test_a_fault_of_storage_is_no_fault_of_the_call(error: LanceCoreError, kind: type[ClientError]) -> None:
    with pytest.raises(ClientError) as raised, explained("update of t"):
        raise error
    assert type(raised.value) is kind
    assert str(raised.value) == f"update of t: {error}"
