"""The types of requests of operations on rows are those of the published models."""

from __future__ import annotations

import inspect
import typing
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import InvalidInputError
from pydantic import BaseModel, TypeAdapter, ValidationError

from namespace_server.data.request_checks import change_type, checked, read_type
from table_data.requests.table_requests import CHANGES, READS

KINDS: dict[str, type] = {**CHANGES, **READS}
OF_INDICES = {"index_operators", "custom_stop_words", "max_ngram_length", "min_ngram_length", "split_identifiers"}
OF_INDICES |= {"block_size", "prefix_only", "preserve_original", "replace", "split_on_numerics"}
OURS = {"timeout", "arrow_schema", "order_by"} | OF_INDICES
"""Fields that are not published: `timeout` is one of requests with rows in the query, and every change takes it."""
UNCHECKED = {"identity"}
NOT_IN_BODIES = {"insert_into_table", "merge_insert_into_table", "create_table"}
"""Their fields are in the query: the published models have more of them."""
NOT_PUBLISHED = {
    "cherry_pick_table_branch",
    "diff_table_branch",
    "fetch_table_blobs",
    "find_table_blob",
    "prewarm_table_index",
    "prewarm_table_pages",
    "read_table_blob",
}


def published(operation: str) -> type[BaseModel]:
    request = list(inspect.signature(getattr(LanceNamespace, operation)).parameters.values())[1].annotation
    assert issubclass(request, BaseModel)
    return request


def fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Type and whether it must be there, by name."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: (field.annotation, field.is_required()) for name, field in kind.model_fields.items()}
    written = get_type_hints(kind, include_extras=True)
    required = kind.__required_keys__ | {name for name, hint in written.items() if get_origin(hint) is typing.Required}
    return {name: (hint, name in required) for name, hint in get_type_hints(kind).items()}


def objects(hint: Any) -> list[type]:
    """The types of objects in a type."""
    if isinstance(hint, type) and (typing.is_typeddict(hint) or issubclass(hint, BaseModel)):
        return [hint]
    if hasattr(hint, "__required_keys__"):
        return [hint]
    return [found for part in get_args(hint) for found in objects(part)]


def differences(ours: type, theirs: type, place: str, seen: set[tuple[type, type]]) -> list[str]:
    if (ours, theirs) in seen:
        return []
    seen.add((ours, theirs))
    mine, others = fields(ours), fields(theirs)
    found = [f"{place}.{name}: not published" for name in mine.keys() - others.keys() - OURS]
    found += [f"{place}.{name}: not taken" for name in others.keys() - mine.keys() - UNCHECKED]
    for name in mine.keys() & others.keys():
        (hint, required), (other, demanded) = mine[name], others[name]
        if required != demanded and name not in {"index_name", "k", "vector"}:
            found.append(f"{place}.{name}: required {required}, published {demanded}")
        if (get_origin(hint) is list) != (get_origin(other) is list) and name != "vector":
            found.append(f"{place}.{name}: {hint}, published {other}")
        if name != "virtual_column":
            for inner, outer in zip(objects(hint), objects(other), strict=True):
                found += differences(inner, outer, f"{place}.{name}", seen)
    return found


@pytest.mark.parametrize("operation", sorted(KINDS.keys() - NOT_IN_BODIES - NOT_PUBLISHED))
def test_every_field_is_a_published_one(operation: str) -> None:
    found = differences(KINDS[operation], published(operation), operation, set())
    versions = {f"{operation}.version: not published"} if operation in READS else set()
    assert set(found) - versions == set()


@pytest.mark.parametrize("operation", sorted(NOT_IN_BODIES))
def test_fields_in_the_query_are_published_ones(operation: str) -> None:
    names = set(fields(KINDS[operation])) - OURS - {"context"}
    others = set(fields(published(operation)))
    assert names - others - {"storage_options", "properties", "branch"} == set()


@pytest.mark.parametrize("operation", sorted(KINDS))
def test_a_wrong_type_is_refused(operation: str) -> None:
    kind: TypeAdapter[Any] = change_type(operation) if operation in CHANGES else read_type(operation)
    for name in fields(KINDS[operation]):
        with pytest.raises(ValidationError):
            kind.validate_python({name: object()})


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"updates\[0\]: expected"):
        checked(change_type("update_table"), {"updates": [["a"]]})
    with pytest.raises(InvalidInputError, match="predicate: expected a value, found none"):
        checked(change_type("delete_from_table"), {"id": ["t"]})
    with pytest.raises(InvalidInputError, match="query: expected an object, found 7"):
        checked(read_type("explain_table_query_plan"), {"query": 7})


def test_what_the_operation_does_not_read_is_refused() -> None:
    kind = change_type("delete_from_table")
    assert checked(kind, {"predicate": "a", "identity": {}, "x": None}) == {"predicate": "a"}
    with pytest.raises(InvalidInputError, match="x: expected no such field, found 1"):
        checked(kind, {"predicate": "a", "x": 1})
