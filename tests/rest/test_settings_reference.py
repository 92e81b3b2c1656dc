"""The reference of the settings is what `Settings` says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from namespace_server.settings import Settings

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "generate_settings.py"
PAGE = REPOSITORY / "docs" / "reference" / "settings.md"


@pytest.fixture
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("generate_settings", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_a_stale_page_is_noticed(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = tmp_path / "settings.md"
    stale.write_text(PAGE.read_text().replace("`2333`", "`2334`"))
    monkeypatch.setattr(script, "TARGET", stale)
    monkeypatch.setattr(sys, "argv", ["generate_settings.py", "--check"])
    assert script.main() == 1


def test_it_names_every_setting_with_its_default() -> None:
    text = PAGE.read_text()
    for name, field in Settings.model_fields.items():
        _, _, section = text.partition(f"### `{name}`\n")
        section = " ".join(section.partition("\n#")[0].split())
        assert f"`LANCE_NAMESPACE_{name.upper()}`" in section, name
        assert field.description, name
        assert field.description in section, name
        if isinstance(field.default, str):
            assert f"default: `{field.default}`" in section, name


def test_its_lines_are_short() -> None:
    assert [line for line in PAGE.read_text().splitlines() if len(line) > 100] == []
