"""The client's table of error codes is that of the specification."""

from __future__ import annotations

import lance_namespace.errors

from namespace_client.error_codes import ErrorCode


def test_the_codes_are_those_of_the_specification() -> None:
    specified = lance_namespace.errors.ErrorCode
    assert {code.name: code.value for code in ErrorCode} == {code.name: code.value for code in specified}
