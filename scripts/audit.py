"""Ask an advisory database about every locked distribution: `audit.py PIP_AUDIT LOCK...`.

The exit status is 0 if the database knows all of them and no advisory, 1 if there is an advisory, and 2 if nothing, or
not everything, could be asked: what the database does not answer is not known to be sound.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def audit(pip_audit: str, lock: Path) -> list[dict[str, Any]]:
    """What pip-audit says of each distribution of `lock`. Raises `SystemExit` if it says nothing."""
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    asked = subprocess.run([pip_audit, "--requirement", lock, *options], capture_output=True, text=True, check=False)
    try:
        found: list[dict[str, Any]] = json.loads(asked.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"{lock}: expected an answer of pip-audit, found: {asked.stderr.strip()}", file=sys.stderr)
        raise SystemExit(2) from None
    return found


def status(lock: Path, found: list[dict[str, Any]]) -> int:
    """Print what is known of the distributions of `lock`, and return the exit status that this asks for."""
    unknown = [each for each in found if "skip_reason" in each]
    advisories = [(each, entry) for each in found for entry in each.get("vulns", ())]
    for each, entry in advisories:
        fixed = ", ".join(entry["fix_versions"]) or "no release"
        print(f"{lock}: {each['name']} {each['version']}: {entry['id']}, fixed in {fixed}")
    if len(unknown) == len(found):
        print(f"{lock}: no advisory database could be reached: nothing is known of {len(found)} distributions")
    elif unknown:
        names = ", ".join(each["name"] for each in unknown)
        print(f"{lock}: the advisory database does not know {len(unknown)} of {len(found)} distributions: {names}")
    else:
        print(f"{lock}: {len(found)} distributions, {len(advisories)} advisories")
    return 1 if advisories else 2 if unknown or not found else 0


if __name__ == "__main__":
    program, *locks = sys.argv[1:]
    sys.exit(max((status(lock, audit(program, lock)) for lock in map(Path, locks)), key=(0, 2, 1).index))
