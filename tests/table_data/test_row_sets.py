"""Sets of rows by fragment."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from table_data.staging import RowSet

addresses = st.lists(st.tuples(st.integers(0, 3) | st.just(2**32 - 1), st.integers(0, 9) | st.just(2**32 - 1)))


@given(st.lists(addresses))
def test_rows_are_kept_by_fragment(batches: list[list[tuple[int, int]]]) -> None:
    rows = RowSet()
    for batch in batches:
        rows.add(np.array([fragment << 32 | offset for fragment, offset in batch], np.uint64))
    expected = {row for batch in batches for row in batch}
    assert len(rows) == len(expected)
    assert {(fragment, offset) for fragment, found in rows.by_fragment.items() for offset in found} == expected
