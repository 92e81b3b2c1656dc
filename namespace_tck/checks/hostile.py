"""Names, numbers and bodies that a careful client would not send."""

from __future__ import annotations

from functools import partial

from namespace_tck.exchanges import ServerAnswer
from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()

NAMES = {
    "a_space": "two words",
    "letters_of_other_scripts": "таблица 表",
    "a_quote": "it's",
    "a_double_quote": 'say "x"',
    "a_percent_sign": "50%25",
    "a_slash": "a/b",
    "a_backslash": "a\\b",
    "a_question_mark": "what?x=1#y",
    "a_plus_sign": "a+b&c=d",
    "two_dots": "..",
    "an_emoji": "\U0001f600",
    "a_statement_of_sql": "x'; DROP TABLE t; --",
}

_INVENTED = {"page_token": "\uffff'\"%00\u0000"}


def _clean(answer: ServerAnswer) -> None:
    """A refusal of a client's error: 4xx, and an `ErrorResponse`."""
    if answer.status // 100 != 4:
        raise answer.fail(f"expected a status of 4xx, found {answer.status}")
    answer.error()


def _keeps_or_refuses_namespace(name: str, t: Trial) -> None:
    made = t.id(name)
    answer = t.call("create_namespace", made, {})
    if not answer.is_success:
        _clean(answer)
        t.equal(t.names("list_namespaces", t.space, "namespaces"), [], "namespaces")
        return
    t.call("describe_namespace", made).ok()
    t.equal(t.names("list_namespaces", t.space, "namespaces"), [name], "namespaces")
    t.equal(t.names("list_namespaces", made, "namespaces"), [], "namespaces below")
    t.call("drop_namespace", made, {}).ok()
    t.equal(t.names("list_namespaces", t.space, "namespaces"), [], "namespaces")


def _keeps_or_refuses_table(name: str, t: Trial) -> None:
    made = t.id(name)
    answer = t.call("declare_table", made, {})
    if not answer.is_success:
        _clean(answer)
        t.equal(t.names("list_tables", t.space, "tables"), [], "tables")
        return
    t.call("describe_table", made).ok()
    t.equal(t.names("list_tables", t.space, "tables"), [name], "tables")
    t.call("drop_table", made).ok()
    t.equal(t.names("list_tables", t.space, "tables"), [], "tables")


for _key, _name in NAMES.items():
    _what = _key.replace("_", " ").replace("sql", "SQL")
    checks.define(
        "create_namespace",
        f"a_name_with_{_key}",
        Promise.HOSTILE,
        "CreateNamespaceRequest.id",
        f"A name with {_what} is refused, or it is created, described, listed and dropped as it is.",
        partial(_keeps_or_refuses_namespace, _name),
    )
    checks.define(
        "declare_table",
        f"a_name_with_{_key}",
        Promise.HOSTILE,
        "DeclareTableRequest.id",
        f"A name with {_what} is refused, or it is declared, described, listed and dropped as it is.",
        partial(_keeps_or_refuses_table, _name),
    )


@checks("create_namespace", Promise.HOSTILE, "CreateNamespaceRequest.id")
def a_delimiter_in_a_name_makes_no_alias(t: Trial) -> None:
    """A name that holds the default delimiter, sent with another one, is refused or names no other namespace."""
    t.namespace("a")
    answer = t.call("create_namespace", t.id("a$b"), {}, delimiter="::")
    if not answer.is_success:
        _clean(answer)
        return
    t.call("describe_namespace", t.id("a", "b"), delimiter="::").refused(1)


@checks("create_namespace", Promise.HOSTILE, "CreateNamespaceRequest.id")
def refuses_an_empty_name(t: Trial) -> None:
    """An id with an empty name makes no namespace of that name."""
    t.call("create_namespace", t.id(""), {})
    t.equal([name for name in t.names("list_namespaces", t.space, "namespaces") if not name], [], "empty names")


@checks("create_namespace", Promise.HOSTILE, "CreateNamespaceRequest.id")
def survives_a_very_long_name(t: Trial) -> None:
    """A name of two thousand letters is refused with 4xx, or created and dropped."""
    answer = t.call("create_namespace", t.id("x" * 2000), {})
    if not answer.is_success:
        t.expect(answer.status // 100 == 4, f"expected a status of 4xx, found {answer.status}", answer)


@checks("create_namespace", Promise.HOSTILE, "CreateNamespace")
def survives_deeply_nested_json(t: Trial) -> None:
    """A body of ten thousand nested lists is refused with 4xx."""
    body = b'{"properties": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    answer = t.call("create_namespace", t.id("n"), body)
    t.expect(answer.status // 100 == 4, f"expected a status of 4xx, found {answer.status}", answer)


@checks("create_namespace", Promise.HOSTILE, "CreateNamespace")
def refuses_text_that_is_not_utf8(t: Trial) -> None:
    """A body that is not UTF-8 is refused with 4xx, and nothing is created."""
    answer = t.call("create_namespace", t.id("n"), b'{"properties": {"a": "\xff\xfe"}}')
    t.expect(answer.status // 100 == 4, f"expected a status of 4xx, found {answer.status}", answer)
    t.equal(t.names("list_namespaces", t.space, "namespaces"), [], "namespaces")


@checks("describe_table", Promise.HOSTILE, "DescribeTableRequest.version")
def refuses_a_negative_version(t: Trial) -> None:
    """A version below 0 is refused with 4xx."""
    _clean(t.call("describe_table", t.table(), {"version": -1}, load_detailed_metadata=True))


@checks("describe_table", Promise.HOSTILE, "DescribeTableRequest.version")
def survives_a_huge_version(t: Trial) -> None:
    """A version beyond 64 bits is refused with 4xx."""
    body = b'{"version": %d}' % 2**70
    _clean(t.call("describe_table", t.table(), body, load_detailed_metadata=True))


@checks("list_table_versions", Promise.HOSTILE, "ListTableVersionsRequest.page_token")
def survives_an_invented_page_token(t: Trial) -> None:
    """A page token that the server did not give is refused with 4xx, or answered with a page."""
    answer = t.call("list_table_versions", t.table(), **_INVENTED)
    if not answer.is_success:
        _clean(answer)


@checks("list_tables", Promise.HOSTILE, "ListTablesRequest.page_token")
def survives_an_invented_table_token(t: Trial) -> None:
    """A page token that the server did not give is refused with 4xx, or answered with a page."""
    answer = t.call("list_tables", t.space, **_INVENTED)
    if not answer.is_success:
        _clean(answer)


@checks("query_table", Promise.HOSTILE, "QueryTableRequest.filter")
def a_filter_cannot_change_the_table(t: Trial) -> None:
    """A filter with a second statement behind it changes no row, whether it is answered or refused with 4xx."""
    made = t.table()
    answer = t.call("query_table", made, {"k": 1, "vector": {}, "filter": "id = 1; DELETE FROM t"})
    t.expect(answer.status // 100 in (2, 4), f"expected a status of 2xx or 4xx, found {answer.status}", answer)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("query_table", Promise.HOSTILE, "QueryTableRequest.filter")
def survives_a_deeply_nested_filter(t: Trial) -> None:
    """A filter of two hundred nested brackets is answered or refused with 4xx, and the server goes on."""
    made = t.table()
    text = "(" * 200 + "id = 1" + ")" * 200
    answer = t.call("query_table", made, {"k": 1, "vector": {}, "filter": text})
    t.expect(answer.status // 100 in (2, 4), f"expected a status of 2xx or 4xx, found {answer.status}", answer)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("insert_into_table", Promise.HOSTILE, "InsertIntoTable")
def survives_an_empty_body(t: Trial) -> None:
    """An insert without a body is refused with 4xx, and no row changes."""
    made = t.table()
    _clean(t.call("insert_into_table", made, b""))
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("insert_into_table", Promise.HOSTILE, "InsertIntoTable")
def survives_a_stream_that_claims_too_much(t: Trial) -> None:
    """A stream whose first length is huge is refused with 4xx, and no row changes."""
    made = t.table()
    _clean(t.call("insert_into_table", made, b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"x" * 64))
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("create_table", Promise.HOSTILE, "CreateTable")
def keeps_strange_column_names(t: Trial) -> None:
    """Columns with spaces, dots and quotes in their names are refused with 4xx, or kept as they are."""
    made = t.id("t")
    data = rows([1]).select(["id"]).append_column("two words", rows([1])["name"])
    data = data.append_column("it's", rows([1])["score"])
    answer = t.call("create_table", made, data)
    if not answer.is_success:
        _clean(answer)
        return
    t.equal(t.read(made).column_names, ["id", "two words", "it's"], "columns")


@checks("server", Promise.HOSTILE, "ErrorResponse")
def errors_reveal_no_stack_trace(t: Trial) -> None:
    """The text of an error names no place in the source of the server."""
    answers = [
        t.call("describe_namespace", t.id("missing")),
        t.call("create_namespace", t.id("n"), b"{"),
        t.call("describe_table", t.id("missing")),
    ]
    for answer in answers:
        text = answer.content.decode("utf-8", "replace")
        for trace in ("Traceback", ".py:", ".rs:", ".java:", "panicked at"):
            t.expect(trace not in text, f"the error holds {trace!r}", answer)
