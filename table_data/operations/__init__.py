"""The operations of the namespace specification on the rows of one table, by the names of `LanceNamespace`."""

from __future__ import annotations

from collections.abc import Mapping

from table_data.operations import counting, rows
from table_data.operations.kinds import Change, Read

CHANGES: Mapping[str, Change] = {**rows.CHANGES}
READS: Mapping[str, Read] = {**counting.READS}
