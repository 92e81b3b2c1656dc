"""Whether a server takes changes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReadOnlySwitch:
    """Whether a server is read-only: `always`, or while there is a `file`. Thread-safe.

    The file is looked for each time, which takes less than a hundredth of a change. So the switch works at once.
    """

    always: bool = False
    file: Path | None = None

    def is_on(self) -> bool:
        """Whether the server is read-only now."""
        return self.always or (self.file is not None and os.path.exists(self.file))  # noqa: PTH110 - raises nothing


NEVER_READ_ONLY = ReadOnlySwitch()
