"""Reads damaged copies of the file on the command line, as ordered on standard input, and prints what came of each.

An order is one line of JSON: the bits to invert, and the number of bytes to keep.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa

from lance_core.data import read_rows
from lance_core.errors import CorruptFile


def main(path: str) -> None:
    whole = Path(path).read_bytes()
    for line in sys.stdin:
        bits, kept = json.loads(line)
        damaged = bytearray(whole)
        for bit in bits:
            damaged[bit // 8] ^= 1 << bit % 8
        try:
            found = "read" if isinstance(read_rows(bytes(damaged[:kept])), pa.Table) else "no table"
        except CorruptFile:
            found = "corrupt"
        print(found, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
