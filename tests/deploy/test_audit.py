"""The audit of dependencies does not call sound what no database answered."""

from pathlib import Path
from typing import Any

import pytest

from scripts.audit import audit, status

LOCK = Path("requirements.txt")
SOUND: dict[str, Any] = {"name": "sound", "version": "1.0", "vulns": []}
BROKEN: dict[str, Any] = {
    "name": "broken",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "description": "", "aliases": []}],
}
UNKNOWN: dict[str, Any] = {"name": "unknown", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("found", "expected", "said"),
    [
        ([SOUND], 0, "1 distributions, 0 advisories"),
        ([SOUND, BROKEN], 1, "broken 1.0: PYSEC-1, fixed in 1.1"),
        ([BROKEN, UNKNOWN], 1, "does not know 1 of 2 distributions: unknown"),
        ([SOUND, UNKNOWN], 2, "does not know 1 of 2 distributions: unknown"),
        ([UNKNOWN, UNKNOWN], 2, "no advisory database could be reached: nothing is known of 2 distributions"),
        ([], 2, "no advisory database could be reached"),
    ],
)
def test_status(capsys: pytest.CaptureFixture[str], found: list[dict[str, Any]], expected: int, said: str) -> None:
    assert status(LOCK, found) == expected
    assert said in capsys.readouterr().out


def test_no_answer_is_not_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent = tmp_path / "pip-audit"
    silent.write_text("#!/bin/sh\necho 'connection refused' >&2\nexit 1\n")
    silent.chmod(0o755)
    with pytest.raises(SystemExit) as ended:
        audit(str(silent), LOCK)
    assert ended.value.code == 2
    assert "requirements.txt: expected an answer of pip-audit, found: connection refused" in capsys.readouterr().err
