"""Renders a description as text for a terminal. Long lists are shortened to their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from namespace_server.cli.inspection.messages import UNKNOWN_FIELDS

_LABEL_WIDTH = 14
_LISTED_FRAGMENTS = 12
_LISTED_FIELDS = 40
_VALUE_WIDTH = 160
_OTHER_MESSAGES = ("fragment_tree", "clustering", "max_clustering_id", "max_allocated_field_id", "tag")


def render_text(description: Mapping[str, Any]) -> str:
    """Render a description as lines of text. Control characters are escaped. Ends with a newline.

    Of more than a dozen fragments only the first and last are shown, and of other messages a selection of fields. The
    description itself is complete.
    """
    lines = list(_lines(description))
    return "".join(f"{_printable(line)}\n" for line in lines)


def _lines(description: Mapping[str, Any]) -> Iterator[str]:
    yield f"{description['kind']} {description.get('uri') or description['name']}   {description['bytes']:,} bytes"
    match description["kind"]:
        case "manifest":
            yield from _manifest(description)
        case "transaction":
            yield _entry("operation", _operation(description))
            yield from _transaction_lines(description)
        case _:
            for key, value in description.items():
                if key not in {"kind", "uri", "name", "bytes", "findings", "content"}:
                    yield _entry(key.replace("_", " "), value)
            yield from _map("content", description.get("content"))
    for finding in description["findings"]:
        yield _entry("! finding", finding)


def _manifest(found: Mapping[str, Any]) -> Iterator[str]:
    content, rows = found["content"], found["rows"]
    scheme = f"{found['naming_scheme']} name" if found["naming_scheme"] else found["state"]
    yield _entry("version", f"{found['version']}, {found['state']} ({scheme}), branch {found['branch'] or 'main'}")
    yield _entry("time", found["timestamp"] or "none")
    yield _entry("written by", found["writer"] or "unknown")
    yield _entry("data format", found["data_format"] or "unknown")
    yield _entry("sha256", found["sha256"])
    for word in ("reader", "writer"):
        yield _entry(f"{word} flags", ", ".join(found["flags"][word]) or "none")
    if "versions" in found:
        span = found["versions"]
        yield _entry("versions", f"{span['count']} kept, {span['first']} to {span['last']}")
        yield from _map("tags", {name: _reference(tag) for name, tag in found["tags"].items()})
        yield from _map("branches", {name: _reference(entry) for name, entry in found["branches"].items()})
    transaction = found["transaction"]
    yield _entry("transaction", "missing" if transaction is None else _operation(transaction))
    if transaction is not None:
        yield from _transaction_lines(transaction)
    yield _entry("its file", found["transaction_file"] or "none")
    yield _entry(
        "rows",
        f"{rows['live']:,} live of {rows['physical']:,}, {rows['deleted']:,} deleted; {rows['fragments']:,} fragments, "
        f"{rows['data_files']:,} data files of {rows['data_bytes']:,} bytes, {rows['deletion_files']:,} deletion files",
    )
    yield _entry(
        "marks", f"max_fragment_id {content.get('max_fragment_id', 'unset')}, next_row_id {content['next_row_id']}"
    )
    yield from _fragments(content.get("fragments", []))
    yield from _schema(content.get("fields", []))
    for name in ("schema_metadata", "config", "table_metadata"):
        yield from _map(name.replace("_", " "), content.get(name))
    yield from _map("base paths", {str(base["id"]): _base(base) for base in content.get("base_paths", [])})
    for index in found["indices"]:
        yield _entry("index", _index(index))
    for name in _OTHER_MESSAGES:
        if content.get(name):
            yield _entry(name, content[name])
    for entry in content.get(UNKNOWN_FIELDS, ()):
        yield _entry("unknown field", f"{entry['field']}: {entry['value']}")
    yield _entry(
        "sections", _joined(f"{part['section']} {part['offset']}+{part['bytes']}" for part in found["sections"])
    )


def _operation(transaction: Mapping[str, Any]) -> str:
    return f"{transaction['operation'] or 'unknown'}: {transaction['summary']}"


def _transaction_lines(transaction: Mapping[str, Any]) -> Iterator[str]:
    yield _entry("", f"uuid {transaction['uuid'] or 'none'}, read version {transaction['read_version']}")
    yield from _map("properties", transaction["properties"])
    for entry in transaction["content"].get(UNKNOWN_FIELDS, ()):
        yield _entry("unknown field", f"{entry['field']}: {entry['value']}")


def _fragments(fragments: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    half = _LISTED_FRAGMENTS // 2
    cut = len(fragments) > _LISTED_FRAGMENTS
    for fragment in fragments[:half] if cut else fragments:
        yield _entry("fragment", _fragment(fragment))
    if cut:
        left = fragments[half:-half]
        physical = sum(fragment["physical_rows"] for fragment in left)
        yield _entry("", f"… {len(left):,} fragments of {physical:,} physical rows …")
        for fragment in fragments[-half:]:
            yield _entry("fragment", _fragment(fragment))


def _fragment(fragment: Mapping[str, Any]) -> str:
    said = f"{fragment['id']}: {fragment['physical_rows']:,} rows"
    deletion = fragment.get("deletion_file")
    if deletion is not None:
        name = f"{fragment['id']}-{deletion['read_version']}-{deletion['id']}"
        said += f", {deletion['num_deleted_rows']:,} deleted ({deletion['file_type']} {name}{_at(deletion)})"
    for file in fragment.get("files", ()):
        said += (
            f"; {file['path']}{_at(file)} fields {_numbers(file.get('fields', []))}, {file['file_size_bytes']:,} bytes"
        )
    if fragment.get("overlays"):
        said += f"; {len(fragment['overlays'])} overlays"
    kinds = [name for name in fragment if name.startswith(("inline_", "external_"))]
    if kinds:
        said += f"; {_joined(name.replace('_', ' ') for name in kinds)}"
    return said + _unknown(fragment)


def _schema(fields: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    depth: dict[int, int] = {}
    for field in fields[:_LISTED_FIELDS]:
        level = depth.get(field["parent_id"], -1) + 1
        depth[field["id"]] = level
        said = f"{'  ' * level}{field['id']} {field['name']}: {field['logical_type']}"
        said += "" if field["nullable"] else " not null"
        said += f" {field['metadata']}" if field.get("metadata") else ""
        yield _entry("field", said + _unknown(field))
    if len(fields) > _LISTED_FIELDS:
        yield _entry("", f"… {len(fields) - _LISTED_FIELDS:,} more fields")


def _index(index: Mapping[str, Any]) -> str:
    covers = index["covers"]
    fragments = "coverage unknown"
    if covers is not None:
        fragments = f"{covers.get('count', 'malformed')} fragments {_joined(covers.get('numbers', []))}".strip()
    content = index["content"]
    size, origin = f"{index['bytes']:,} bytes", f"of version {content['dataset_version']}"
    return (
        f"{index['name']} {index['uuid']}: {index['type'] or 'no type'} v{content.get('index_version', '?')} over "
        f"fields {_numbers(index['fields'])}, {fragments}, {size}, {origin}"
        f"{_at(content)}{_unknown(content)}"
    )


def _reference(entry: Mapping[str, Any]) -> str:
    if "parent_version" in entry:
        return f"from version {entry['parent_version']} of {entry['parent_branch'] or 'main'}"
    return f"version {entry['version']} of {entry['branch'] or 'main'}"


def _base(base: Mapping[str, Any]) -> str:
    name = f" ({base['name']})" if base.get("name") else ""
    return f"{base['path']}{name}{'' if base['is_dataset_root'] else ', not a table'}"


def _at(message: Mapping[str, Any]) -> str:
    return f" @base {message['base_id']}" if "base_id" in message else ""


def _unknown(message: Mapping[str, Any]) -> str:
    return "".join(f" [unknown field {entry['field']}: {entry['value']}]" for entry in message.get(UNKNOWN_FIELDS, ()))


def _numbers(numbers: Iterable[int]) -> str:
    return f"[{_joined(map(str, numbers))}]"


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _map(label: str, values: Any) -> Iterator[str]:
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield _entry(label, f"{key} = {value}")
    elif values is not None:
        yield _entry(label, values)


def _entry(label: str, value: object) -> str:
    text = str(value)
    if len(text) > 8 * _VALUE_WIDTH:
        text = f"{text[: 8 * _VALUE_WIDTH]}… ({len(text):,} characters)"
    return f"  {label:<{_LABEL_WIDTH}}{text}"


def _printable(line: str) -> str:
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in line
    )
