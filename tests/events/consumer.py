"""A consumer of events in a process of its own: notes each catalog version once, and dies at any moment.

Told by a JSON object as its only argument: `urls` of servers, `cursor`, and `notes`, the file to which it appends a
line for each event: its version, and the digest of its bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from pathlib import Path

from namespace_client import Catalog


def noted(notes: Path) -> int | None:
    """The version in the last whole line; what a process that died left of one is removed."""
    if not notes.exists():
        return None
    text = notes.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        notes.write_text(whole)
    return int(whole.splitlines()[-1].split()[0]) if whole else None


def main() -> None:
    config = json.loads(sys.argv[1])
    notes = Path(config["notes"])
    seen = noted(notes)
    with Catalog.connect(random.choice(config["urls"])) as catalog, notes.open("a") as file:
        for event in catalog.events(cursor=config["cursor"], follow=True):
            if seen is not None and event.version <= seen:
                continue  # told again after a crash
            digest = hashlib.sha256(json.dumps(event.cloud_event).encode()).hexdigest()
            file.write(f"{event.version} {digest}\n")
            file.flush()
            os.fsync(file.fileno())
            seen = event.version


if __name__ == "__main__":
    main()
