"""The screens of tables and what is kept: what they show, to whom, by how many requests; and the few changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import httpx
import lance
import pyarrow as pa
import pytest

from namespace_client import Catalog
from namespace_console.application import Console
from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.read_only import ReadOnlySwitch
from namespace_server.rest.identity import Authenticator
from tests.console.conftest import HOSTILE, KEY_OF, KEYS, PNG, Site, Visitor, text_of, tone
from tests.running import serving

ORDERS = "/tables/shop%24orders"


SCREENS = {
    "/namespaces": 3,
    "/namespaces/shown": 4,
    "/tables/shown%24all": 9,
    "/tables/shown%24all/fragments": 2,
    "/tables/shown%24all/rows": 7,
    "/tables/shown%24all/rows?like=3&vector=vector": 8,
    "/tables/shown%24all/rows?text=fox": 7,
    f"/tables/shown%24{quote('<i>odd & ')}%22name": 9,
    f"/tables/shown%24{quote('<i>odd & ')}%22name/rows": 4,
    "/search": 1,
    "/search?text=ORD": 2,
    "/drops": 2,
    "/kept": 4,
    "/grants": 3,
    "/tables/shown%24all/tag?version=1": 9,
    "/tables/shown%24all/drop": 12,
    "/tables/shown%24all/maintenance": 3,
    "/pin": 1,
}
"""Each page, and how many requests to the API it takes."""


@pytest.mark.parametrize("path", SCREENS)
def test_a_page_takes_so_many_requests_and_shows_what_is_hostile_as_text(ann: Visitor, site: Site, path: str) -> None:
    site.asked.clear()
    answer = ann.get(path)
    assert answer.status_code == 200, text_of(answer.text)
    assert len(site.asked) == SCREENS[path], site.asked
    require_harmless(answer.text)
    assert not re.search("[\u202e\u0007\u200b]", answer.text)
    assert "x" * 2_000 not in re.sub(r"<details>.*?</details>", "", answer.text, flags=re.DOTALL)
    assert re.search(r"catalog version", answer.text)


@pytest.fixture(scope="module")
def eve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Eve, who may read one table of two, on a catalog with grants in force."""
    root = tmp_path_factory.mktemp("granted") / "catalog"
    app = create_app(DirectoryNamespace(root=str(root), durability="none"), Authenticator(KEYS, wrong_keys=0))
    app.mount("console", Console())
    with serving(app) as url, Catalog.connect(url, api_key=KEY_OF["ann"]) as owner:
        owner.create_namespace(("shop",))
        for name in ("orders", "secret", "dropped"):
            owner.create(("shop", name), pa.table({"id": [1], "b": [PNG]}))
        owner.drop(("shop", "dropped"))
        owner.pin("of-ann")
        owner.enable_grants(principals=["ann"])
        owner.create(("shop", "names"), pa.table({"hidden_column": [1]}), properties={"owner": "ann"})
        owner.grant("read", principal="eve", table=("shop", "orders"))
        owner.grant("see", principal="eve", table=("shop", "names"))
        with httpx.Client(base_url=url, verify=False, timeout=30) as http:
            visitor = Visitor(http)
            assert visitor.sign_in(KEY_OF["eve"]).status_code == 303
            yield visitor


SOUND = "/tables/shown%24all/values/sound?row=0&blob=1"


class TestGrants:
    @pytest.mark.parametrize(
        "page",
        [
            "",
            "/fragments",
            "/rows",
            "/rows?filter=id%3D1",
            "/values/b?row=0",
            "/tag",
            "/drop",
            "/maintenance",
            "/undrop?tombstone=x",
            "?at=3",
        ],
    )
    def test_what_is_hidden_is_answered_as_what_is_not_there(self, eve: Visitor, page: str) -> None:
        hidden, absent = eve.get(f"/tables/shop%24secret{page}"), eve.get(f"/tables/shop%24absent{page}")
        assert hidden.status_code == absent.status_code == 404
        told = [re.sub("secret|absent", "it", answer.text) for answer in (hidden, absent)]
        assert told[0] == told[1]
        if page != "/undrop?tombstone=x":
            assert eve.get(f"/tables/shop%24orders{page}").status_code == 200

    def test_a_table_that_may_be_seen_and_not_read_shows_what_is_told(self, eve: Visitor) -> None:
        shown = eve.text("/tables/shop%24names")
        assert "may not read it" in shown
        assert "owner ann" in shown
        assert "hidden_column" not in shown
        for page in ("/rows", "/fragments", "/values/hidden_column?row=0"):
            answer = eve.get(f"/tables/shop%24names{page}")
            assert answer.status_code == 403
            assert "hidden_column" not in answer.text.replace("/values/hidden_column", "")

    def test_who_may_not_maintain_a_table_is_told_so(self, eve: Visitor) -> None:
        page = "/tables/shop%24orders/maintenance"
        assert "You may not maintain this table" in eve.text(page)
        assert "<form" not in re.sub(r"<header.*?</header>", "", eve.get(page).text, flags=re.DOTALL)
        assert eve.post(page, {}, of="/pin").status_code == 403

    def test_lists_have_what_may_be_seen(self, eve: Visitor) -> None:
        assert "orders" in eve.text("/namespaces/shop")
        assert "orders" in eve.text("/search?text=shop")
        for path in ("/namespaces/shop", "/search?text=shop", "/search?text=secret", "/drops", "/kept", "/grants"):
            shown = eve.text(path)
            assert not re.search("shop.(secret|dropped)|of-ann", shown), path
        assert "in force" in eve.text("/grants")

    def test_who_may_not_change_is_told_so(self, eve: Visitor) -> None:
        page = "/tables/shop%24orders"
        answer = eve.post(f"{page}/drop", asked_about(eve, page), of=f"{page}/drop")
        assert answer.status_code == 403
        assert "permission denied" in text_of(answer.text)
        assert eve.get(page).status_code == 200


class TestTables:
    def test_a_table_has_all_that_the_catalog_tells(self, ann: Visitor) -> None:
        shown = ann.text("/tables/shown%24all")
        for expected in (
            "62 rows",
            "Inverted",
            "fixed_size_list",
            "blob",
            "dev",
            "maintenance.compact",
            "first",
        ):
            assert expected in shown, expected
        assert "1 version 60 rows" in ann.text("/tables/shown%24all?version=1")

    def test_columns_are_paged(self, ann: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("namespace_console.screens.tables.COLUMNS", 3)
        pages = [ann.get(f"/tables/shown%24all?columns_after={after}").text for after in (0, 3, 6)]
        listed = [re.findall(r"<td><bdi>(\w+)</bdi></td><td class=\"code\">", page) for page in pages]
        assert listed == [["id", "words", "nested"], ["vector", "picture", "page"], ["small", "sound"]]
        told = [re.findall(r'(\w+)" href="[^"]*?(?:columns_after=(\d+))?#columns"', page) for page in pages]
        assert told == [[("next", "3")], [("prev", ""), ("next", "6")], [("prev", "3")]]
        assert ann.get("/tables/shown%24all?columns_after=x").status_code == 400

    def test_fragments_have_their_files(self, ann: Visitor) -> None:
        shown = ann.text("/tables/shown%24all/fragments")
        assert "2 fragments of version 3" in shown
        assert shown.count(".lance") == 2
        assert "1 fragment of version 1" in ann.text("/tables/shown%24all/fragments?version=1")
        assert ann.get("/tables/shown%24all/fragments?version=99").status_code == 404

    def test_a_pinned_page_is_of_its_version_and_so_are_its_links(self, ann: Visitor, site: Site) -> None:
        site.owner.create(("shown", "later"), pa.table({"id": [1]}))
        before = site.owner.access.state().version
        site.owner.append(("shown", "later"), pa.table({"id": [2]}))
        page = ann.get(f"/tables/shown%24later/rows?at={before}")
        assert "Rows 1 to 1" in text_of(page.text)
        assert f"at={before}" in page.text
        assert "Rows 1 to 2" in ann.text("/tables/shown%24later/rows")
        assert "Rows 1 to 1" in ann.text("/tables/shown%24later/rows?version=1")

    def test_names_are_found_in_any_case(self, ann: Visitor) -> None:
        assert "shop.orders" in ann.text("/search?text=ORDERS%20shop")
        assert "No table" in ann.text("/search?text=nothing-of-this-name")

    def test_a_namespace_is_paged(self, ann: Visitor, site: Site) -> None:
        site.owner.create_namespace(("many",))
        operations = [{"declare_table": {"id": ["many", f"t{number:03}"]}} for number in range(150)]
        site.owner.access.change("batch_commit_tables", {"operations": operations})
        page = ann.get("/namespaces/many").text
        assert "t099" in page
        assert "t100" not in page
        [more] = re.findall(r'href="(/console/namespaces/many\?[^"]*tables_after=[^"]*)"', page)
        following = ann.get(more.removeprefix("/console").replace("&amp;", "&")).text
        assert "t100" in following
        assert "t099<" not in following


class TestRows:
    def test_pages_order_and_filter(self, ann: Visitor) -> None:
        page = ann.get("/tables/shown%24all/rows?order=id&descending=1&filter=id+%3C+40&limit=25").text
        assert "Rows 1 to 25" in text_of(page)
        [following] = re.findall(r'rel="next" href="([^"]*)"', page)
        assert "Rows 26 to 42" in ann.text(following.removeprefix("/console").replace("&amp;", "&"))

    def test_columns_are_chosen(self, ann: Visitor, site: Site) -> None:
        site.owner.create(("shown", "wide"), pa.table({"a b": [2, 1]} | {f"c{number}": [1, 2] for number in range(60)}))
        page = ann.text("/tables/shown%24wide/rows")
        assert "The first 40 of 61 columns" in page
        assert ("c38" in page, "c39" in page) == (True, False)
        page = ann.text("/tables/shown%24wide/rows?columns=c59,%20a+b&order=a+b")
        assert re.search(r"Rows 1 to 2 .* c59 int64 a b ↑ int64 1 2 1 0 1 2", page)
        assert ann.get("/tables/shown%24wide/rows?columns=nothing").status_code == 400

    def test_an_error_of_a_filter_is_told(self, ann: Visitor) -> None:
        answer = ann.get("/tables/shown%24all/rows?filter=nothing+%3D+1")
        assert answer.status_code == 400
        assert "nothing" in text_of(answer.text)
        assert 'value="nothing = 1"' in answer.text
        assert ann.get("/tables/shown%24all/rows?text=fox&order=id").status_code == 400
        assert ann.get("/tables/shown%24all/rows?limit=100000").status_code == 400
        assert ann.get("/tables/shown%24all/rows?after=-1").status_code == 400

    def test_rows_like_one_are_the_nearest_first(self, ann: Visitor) -> None:
        shown = ann.text("/tables/shown%24all/rows?like=7&vector=vector")
        assert "Rows like row 7" in shown
        assert "red fox 7" in shown
        assert "red fox 50" not in shown

    def test_a_vector_is_a_line_and_nested_values_are_folded(self, ann: Visitor) -> None:
        page = ann.get("/tables/shown%24all/rows").text
        assert re.search(r'<svg class="sparkline"[^>]*><path d="M[0-9. L]+"/></svg>', page)
        assert page.count("<details>") >= 50

    @pytest.mark.parametrize(("column", "query"), [("picture", "row=0&blob=1"), ("small", "row=1")])
    def test_images_are_shown_by_their_first_bytes(self, ann: Visitor, column: str, query: str) -> None:
        assert f"/values/{column}?" in ann.get("/tables/shown%24all/rows").text
        answer = ann.get(f"/tables/shown%24all/values/{column}?{query}")
        assert (answer.status_code, answer.content) == (200, PNG)
        assert answer.headers["content-type"] == "image/png"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"

    @pytest.mark.parametrize(
        ("column", "query", "status"),
        [
            ("page", "row=0&blob=1", 400),
            ("small", "row=0", 400),
            ("words", "row=0", 404),
            ("picture", "row=0", 404),
            ("small", "row=9999", 404),
            ("small", "", 400),
            ("absent", "row=0", 404),
        ],
    )
    def test_nothing_else_is_served(self, ann: Visitor, column: str, query: str, status: int) -> None:
        answer = ann.get(f"/tables/shown%24all/values/{column}?{query}")
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "<svg onload" not in answer.text
        assert f"/values/{column}?" not in ann.get("/tables/shown%24all/rows").text or column in {"small", "picture"}


class TestRanges:
    """A browser seeks in a sound by asking for parts of it."""

    @pytest.mark.parametrize(
        ("asked", "first", "last"),
        [
            ("bytes=0-", 0, 160_043),
            ("bytes=100-199", 100, 199),
            ("bytes=-44", 160_000, 160_043),
            ("bytes=9-1", None, None),
        ],
    )
    def test_a_part_is_served(self, ann: Visitor, asked: str, first: int | None, last: int | None) -> None:
        answer = ann.get(SOUND, Range=asked)
        whole = tone(10)
        assert answer.headers["content-type"] == "audio/wav"
        assert answer.headers["accept-ranges"] == "bytes"
        if first is None or last is None:  # no range: it is to be ignored
            assert (answer.status_code, answer.content) == (200, whole)
            return
        assert (answer.status_code, answer.content) == (206, whole[first : last + 1])
        assert answer.headers["content-range"] == f"bytes {first}-{last}/{len(whole)}"
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"

    def test_a_part_beyond_the_end_is_refused(self, ann: Visitor) -> None:
        answer = ann.get(SOUND, Range="bytes=160044-")
        assert (answer.status_code, answer.content) == (416, b"")
        assert answer.headers["content-range"] == "bytes */160044"

    def test_a_part_of_what_may_be_another_by_now_is_not_served(self, ann: Visitor) -> None:
        assert ann.get(SOUND, **{"Range": "bytes=5-9", "If-Range": '"a tag"'}).status_code == 200

    def test_parts_of_other_bytes_are_served_as_little_as_all(self, ann: Visitor) -> None:
        answer = ann.get("/tables/shown%24all/values/page?row=0&blob=1", Range="bytes=0-9")
        assert (answer.status_code, b"<script>" in answer.content) == (400, False)

    def test_of_a_long_value_parts_are_served_and_not_the_whole(self, ann: Visitor, site: Site) -> None:
        blob = pa.field("film", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        film = b"\0\0\0\x18ftypmp42" + bytes(33 << 20)
        site.owner.create(("shown", "films"), pa.table({"film": pa.array([film], blob.type)}, schema=pa.schema([blob])))
        address = "/tables/shown%24films/values/film?row=0&blob=1"
        part = ann.get(address, Range="bytes=8-")
        assert (part.status_code, len(part.content), part.content[:4]) == (206, 4 << 20, b"mp42")
        assert part.headers["content-type"] == "video/mp4"
        assert part.headers["content-range"] == f"bytes 8-{8 + (4 << 20) - 1}/{len(film)}"
        assert "video/mp4" not in ann.get(address).headers["content-type"]
        assert "expected at most 33,554,432 bytes" in text_of(ann.get(address).text).replace("Expected", "expected")
        assert "<video controls" in ann.get("/tables/shown%24films/rows").text


class TestKept:
    def test_drops_pins_and_jobs_are_listed(self, ann: Visitor, site: Site) -> None:
        owner = site.owner
        owner.create(("shown", "gone"), pa.table({"id": [1]}))
        owner.drop(("shown", "gone"))
        owner.pin("books", reason=HOSTILE[:400], lasting=timedelta(days=3))
        owner.advance_cursor("etl", 1)
        with owner.intent([("shown", "all")], reason="training"):
            shown = ann.text("/kept")
            assert "1 registered" in ann.text("/tables/shown%24all/drop")
        for expected in ("books", "training", "shown.all", "etl"):
            assert expected in shown
        assert "shown.gone" in ann.text("/drops")
        assert "not in force" in ann.text("/grants")
        assert "ann" in ann.text("/grants")

    def test_what_has_no_history_is_the_newest_and_says_so(self, ann: Visitor, site: Site) -> None:
        site.owner.pin("of-now")
        for page in ("/kept", "/grants"):
            newest = f"catalog version {site.owner.access.state().version:,} · the newest, since this has no history"
            assert newest in ann.text(f"{page}?at=1")
            assert "link to this version" not in ann.text(page)
        assert "of-now" in ann.text("/kept?at=1")
        site.owner.unpin("of-now")

    def test_each_drop_that_is_listed_can_come_back(self, tmp_path: Path) -> None:
        app = create_app(DirectoryNamespace(root=str(tmp_path), durability="none"), Authenticator({}))
        app.mount("console", Console())
        with serving(app) as url, Catalog.connect(url) as owner, httpx.Client(base_url=url, timeout=30) as http:
            owner.create_namespace(("many",))
            names = [f"t{number:04d}" for number in range(1_001)]
            operations = [{"declare_table": {"id": ["many", name]}} for name in names]
            http.post("/v1/table/batch-commit", json={"operations": operations}).raise_for_status()
            http.post("/v1/namespace/many/drop", json={"behavior": "Cascade"}).raise_for_status()
            drops = owner.dropped_tables()
            assert len(drops) == len(names)
            for drop in (drops[0], drops[-1]):
                asked = Visitor(http).get(f"/tables/many%24{drop.id[-1]}/undrop?tombstone={drop.tombstone}")
                assert asked.status_code == 200, text_of(asked.text)


class TestChanges:
    def test_a_table_is_dropped_and_brought_back(self, ann: Visitor, site: Site) -> None:
        owner = site.owner
        owner.create(("shown", "target"), pa.table({"id": [1, 2]}))
        page = "/tables/shown%24target"
        fields = asked_about(ann, page) | {"message": "not needed"}
        assert fields["version"] == "1"
        refused = ann.http.post(f"/console{page}/drop", data=fields)
        assert refused.status_code == 403
        elsewhere = ann.post(f"{page}/drop", fields, of=f"{page}/drop", origin="https://elsewhere.example")
        assert elsewhere.status_code == 403
        assert exists(owner, "target")
        owner.append(("shown", "target"), pa.table({"id": [3]}))
        answer = ann.post(f"{page}/drop", fields, of=f"{page}/drop")
        assert answer.status_code == 409, text_of(answer.text)
        assert "has changed meanwhile" in answer.text, text_of(answer.text)
        assert exists(owner, "target")
        fields["version"] = "2"
        answer = ann.post(f"{page}/drop", fields, of=f"{page}/drop")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/drops")
        assert not exists(owner, "target")
        [drop] = [each for each in owner.dropped_tables() if each.id == ("shown", "target")]
        [batch] = owner.history(limit=1)[0].batches
        assert (batch.principal, batch.message) == ("ann", "not needed")

        asked = f"{page}/undrop?tombstone={drop.tombstone}"
        assert "shown.target" in ann.get(asked).text
        given = {"tombstone": drop.tombstone, "new_name": "shown.back"}
        assert ann.http.post(f"/console{page}/undrop", data=given).status_code == 403
        answer = ann.post(f"{page}/undrop", given, of=asked)
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/tables/shown%24back")
        state = owner.access.table(("shown", "back"))
        assert state is not None
        assert lance.dataset(state.uri).count_rows() == 3
        assert ann.get(asked).status_code == 404

    def test_a_table_is_maintained(self, ann: Visitor, site: Site) -> None:
        name, page = ("shown", "tidy"), "/tables/shown%24tidy/maintenance"
        for number in range(4):
            rows = pa.table({"id": [2 * number, 2 * number + 1]})
            if number:
                site.owner.append(name, rows)
            else:
                site.owner.create(name, rows, properties={"maintenance.compact": "true"})
        assert "What is worth work" in ann.text("/tables/shown%24tidy")
        asked = ann.text(page)
        assert "This is worth work." in asked
        assert "Worth joining 4 small fragments" in asked
        assert ann.http.post(f"/console{page}", data={"message": "x"}).status_code == 403
        answer = ann.post(page, {"message": "tidy up"}, of=page)
        assert answer.status_code == 200, text_of(answer.text)
        assert "Done. 1 commit: 4 fragments became 1." in text_of(answer.text)
        assert "Maintain the table" not in answer.text  # nothing is left
        require_harmless(answer.text)
        state = site.owner.access.table(name)
        assert state is not None
        dataset = lance.dataset(state.uri)
        assert (len(dataset.get_fragments()), dataset.count_rows()) == (1, 8)
        site.owner.delete(name, "id < 4")
        busy = ann.get(page).text
        assert "left to its other writers" in busy
        assert "was committed less than 60 s ago" in busy
        answer = ann.post(page, {"forced": "yes"}, of=page)
        assert "Done. 1 commit: 1 fragment became 1." in text_of(answer.text)
        assert lance.dataset(state.uri).count_rows() == 4

    def test_a_version_is_tagged(self, ann: Visitor, site: Site) -> None:
        page = "/tables/shop%24orders/tag"
        assert "version 1" not in {*site.owner.tags(("shop", "orders"))}
        assert ann.post(page, {"tag": "kept", "version": ""}, of=page).status_code == 400
        assert ann.post(page, {"tag": "kept", "version": "1"}, of=page).status_code == 303
        state = site.owner.access.table(("shop", "orders"))
        assert state is not None
        assert lance.dataset(state.uri).tags.list()["kept"]["version"] == 1
        assert ann.post(page, {"tag": "kept", "version": "1"}, of=page).status_code == 409

    def test_a_catalog_version_is_pinned_and_the_pin_removed(self, ann: Visitor, site: Site) -> None:
        fields = {"name": "from-here", "version": "3", "days": "2", "reason": "books"}
        assert ann.http.post("/console/pin", data=fields).status_code == 403
        assert ann.post("/pin", fields | {"days": "31"}, of="/pin").status_code == 400
        assert ann.post("/pin", fields, of="/pin").status_code == 303
        [pin] = [each for each in site.owner.pins() if each.name == "from-here"]
        assert (pin.version, pin.reason, pin.principal) == (3, "books", "ann")
        assert pin.until is not None
        asked = "/unpin?name=from-here"
        assert "from-here" in ann.text(asked)
        assert ann.post("/unpin", {"name": "from-here"}, of=asked).status_code == 303
        assert "from-here" not in {each.name for each in site.owner.pins()}
        assert ann.get(asked).status_code == 404

    def test_a_question_changes_nothing(self, ann: Visitor, site: Site) -> None:
        before = site.owner.access.state().version
        for path in (
            "/tables/shop%24orders/drop",
            "/tables/shop%24orders/tag?tag=x&version=1",
            "/tables/shop%24orders/maintenance",
            "/pin?name=x&version=1",
        ):
            assert ann.get(path).status_code == 200
        assert site.owner.access.state().version == before


def test_a_server_that_is_read_only_offers_no_maintenance(tmp_path: Path) -> None:
    switch = tmp_path / "read-only"
    namespace = DirectoryNamespace(root=str(tmp_path / "root"), durability="none")
    app = create_app(namespace, Authenticator({}), read_only=ReadOnlySwitch(file=switch))
    app.mount("console", Console())
    with serving(app) as url, Catalog.connect(url) as owner, httpx.Client(base_url=url, verify=False) as http:
        owner.create("t", pa.table({"id": [1]}))
        assert "Nothing of this table is worth work." in Visitor(http).text("/tables/t/maintenance")
        switch.touch()
        refused = Visitor(http).get("/tables/t/maintenance")
        assert refused.status_code == 503
        assert "read-only" in refused.text
        assert "Maintain the table" not in refused.text


class Tags(HTMLParser):
    """The elements of a page, as browsers see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def require_harmless(page: str) -> None:
    """No text of others has become an element or an attribute of a page."""
    for tag, attributes in Tags(page).found:
        assert tag not in {"b", "i", "iframe", "object", "style"} or not attributes, tag
        assert tag != "i"
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        for name in ("src", "href", "action", "hx-get"):
            assert (attributes.get(name) or "/console").startswith(("/console", "#")), (tag, attributes)
        assert tag != "script" or attributes.get("src")


def asked_about(visitor: Visitor, page: str) -> dict[str, str]:
    """The fields of the question whether to drop a table."""
    found = (attributes for tag, attributes in Tags(visitor.get(f"{page}/drop").text).found if tag == "input")
    return {each["name"] or "": each["value"] or "" for each in found if each.get("name") in {"version", "location"}}


def exists(owner: Catalog, name: str) -> bool:
    return owner.access.table(("shown", name)) is not None
