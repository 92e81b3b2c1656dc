"""Changes of rows are for who may read the table, and tell nothing of another one that had its name."""

from __future__ import annotations

from pathlib import Path

import httpx
import pyarrow as pa

from namespace_client import Catalog
from tests.access.granting import ADMIN, Caller, granted, key, keys, switch_on
from tests.running import running

ROWS = pa.table({"id": [1, 2]})


def kinds(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    found: list[str] = pa.ipc.open_stream(answer.content).read_all().column("_change_type").to_pylist()
    return found


def test_they_are_judged_by_the_grants_of_today(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with (
        running(root, keys(ADMIN, "reader", "other")) as url,
        Catalog.connect(url, api_key=key(ADMIN)) as catalog,
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        catalog.create("t", ROWS, stable_row_ids=True)
        with_another = catalog.history(1)[0].version
        catalog.drop("t")
        catalog.create("t", ROWS, stable_row_ids=True)
        catalog.create("hidden", ROWS, stable_row_ids=True)
        catalog.advance_cursor("admins", 0)
        given = switch_on(root, granted("table", "t", "reader", "read", since=catalog.history(1)[0].version))
        admin, reader, other = (Caller(http, name) for name in (ADMIN, "reader", "other"))
        catalog.delete("t", "id = 1")

        assert kinds(reader.post("/v1/table/t/changes", {"since": given})) == ["delete"]
        absent = other.post("/v1/table/none/changes", {"since": 0})
        assert (absent.status_code, absent.json()["code"]) == (404, 4)
        for caller, name in ((other, "t"), (reader, "hidden"), (other, "hidden")):
            refused = caller.post(f"/v1/table/{name}/changes", {"since": 0})
            assert refused.status_code == 404
            assert refused.json() == {**absent.json(), "error": absent.json()["error"].replace("none", name)}

        # Another table had the name: who may see it is told so, and to others it was not there.
        assert admin.post("/v1/table/t/changes", {"since": with_another}).status_code == 410
        assert kinds(reader.post("/v1/table/t/changes", {"since": with_another})) == ["insert", "insert", "delete"]

        of_others = reader.post("/v1/table/t/changes", {"cursor": "admins"})
        none = reader.post("/v1/table/t/changes", {"cursor": "nobodys"})
        assert of_others.json()["error"].replace("admins", "nobodys") == none.json()["error"]
