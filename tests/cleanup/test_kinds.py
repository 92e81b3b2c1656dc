"""What a file is, by its name."""

from __future__ import annotations

import pytest

from lance_core.cleanup.kinds import FileKind, role_of

ONE, TWO = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
NEWEST = "18446744073709551610.manifest"


@pytest.mark.parametrize(
    ("key", "kind", "name"),
    [
        ("data/0101abc.lance", FileKind.DATA, "data/0101abc.lance"),
        ("data/0101abc/01.blob", FileKind.DATA, "data/0101abc.lance"),
        ("tree/dev/data/0101abc.lance", FileKind.DATA, "data/0101abc.lance"),
        ("tree/data/x/data/0101abc.lance", FileKind.DATA, "data/0101abc.lance"),
        ("_deletions/1-2-3.arrow", FileKind.DELETION, "_deletions/1-2-3.arrow"),
        (f"_indices/{ONE}/data/page.lance", FileKind.INDEX, f"_indices/{ONE}"),
        (f"tree/a/b/c/_indices/{ONE}/page.lance", FileKind.INDEX, f"_indices/{ONE}"),
        (f"_transactions/3-{ONE}.txn", FileKind.TRANSACTION, f"_transactions/3-{ONE}.txn"),
        (f"_versions/{NEWEST}", FileKind.MANIFEST, ""),
        ("_versions/7.manifest", FileKind.MANIFEST, ""),
        ("_versions/d17190377078742468405.manifest", FileKind.MANIFEST, ""),
        (f"tree/dev/_versions/{NEWEST}", FileKind.MANIFEST, ""),
        (f"nested/_versions/{NEWEST}", FileKind.NESTED, ""),
        (f"nested/_versions/{NEWEST}-{ONE}", FileKind.NESTED, ""),
        (f"_versions/{NEWEST}-{ONE}", FileKind.STAGED, ""),
        (f"_staging/{ONE}/{NEWEST}", FileKind.STAGED, ""),
        (f"_staging/{ONE}/{TWO}/_versions/{NEWEST}", FileKind.SCRATCH, ""),
        (f"_staging/{ONE}/{TWO}/data/x.lance", FileKind.SCRATCH, ""),
        (f"_staging/foreign/{ONE}/a/_versions/{NEWEST}", FileKind.NESTED, ""),
        (f"_staging/{ONE}/clock", FileKind.BOOKKEEPING, ""),
        ("_versions/latest_version_hint.json", FileKind.BOOKKEEPING, ""),
        ("_refs/tags/a.json", FileKind.BOOKKEEPING, ""),
        ("_refs/branches/dev%2Fx.json", FileKind.BOOKKEEPING, ""),
    ],
)
def test_known_names(key: str, kind: FileKind, name: str) -> None:
    role = role_of(key)
    assert role is not None
    assert (role.kind, role.name) == (kind, name)


@pytest.mark.parametrize(
    "key",
    [
        "notes.txt",
        "data/readme.md",
        "data/7.manifest",
        "x/data/0101abc.lance",
        "tree/data/0101abc.lance",
        "_deletions/x.arrow",
        "_indices/x/page.lance",
        "_transactions/x",
        f"other/3-{ONE}.txn",
        "_versions/x",
        "_versions/d1.manifest",
        f"_versions/.tmp-{NEWEST}",
        "_staging/x",
        "x/_mem_wal/1/data/x.lance",
    ],
)
def test_unknown_names(key: str) -> None:
    assert role_of(key) is None
