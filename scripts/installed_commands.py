"""Run the commands of the guides with the package that this Python has installed, and a client of it.

Works in the present directory, which is empty. Each command has to succeed; so does each call of the client, in process
and through a server. Nothing of the checkout is imported.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("lance-namespace"))
COMMANDS = """
--version
--help
create --help
serve --help
create shop -m first
load shop.orders=orders.csv shop.items=items.jsonl --mode create --vector place -m load
load shop.orders=night.csv --mode upsert --on id
ls -l -R
ls -R --json
show shop.orders
read shop.orders --where amount>2 --columns id,amount
read shop.orders -o orders.parquet
query shop.items --vector [0.2,0.8] -k 1
log --stat
diff 2 3
tag create shop.orders audited --version 1
tag list shop.orders
branch create shop.orders trial
rename shop.items shop.goods
drop shop.goods
dropped
undrop shop.goods
pin keep
pins
unpin keep
config show --root ./catalog
keys add keys.toml ann
keys list keys.toml
check
doctor
gc --dry-run
maintain --dry-run
backup ./backups
backups ./backups
verify-backup ./backups
restore ./backups ./restored
ls -R --root ./restored
inspect ./catalog/__manifest
migrate --manifest-store sqlite:///store.db
tck --list
"""
CLIENT = """
import sys
import pyarrow as pa
from namespace_client import Catalog

with Catalog.connect(sys.argv[1], namespace="lab") as catalog:
    catalog.ensure_namespace()
    catalog.create("t", pa.table({"id": [1, 2, 3]}))
    with catalog.begin(message="two") as tx:
        tx.append("t", [{"id": 4}])
        tx.create("u", {"id": [7]})
    catalog.merge("t", [{"id": 1}, {"id": 9}], on="id")
    catalog.delete("t", "id = 2")
    assert sorted(catalog.read("t")["id"].to_pylist()) == [1, 3, 4, 9]
    catalog.drop("u")
    catalog.drop_namespace(("lab",), cascade=True)
"""


def main() -> None:
    """Run everything."""
    Path("orders.csv").write_text("id,item,amount\n1,tea,3\n2,rice,10\n")
    Path("night.csv").write_text("id,item,amount\n2,rice,12\n3,salt,1\n")
    Path("items.jsonl").write_text('{"item": "tea", "place": [0.1, 0.9]}\n{"item": "rice", "place": [0.8, 0.2]}\n')
    os.environ["LANCE_NAMESPACE_ROOT"] = "./catalog"
    for line in COMMANDS.split("\n"):
        if line:
            _command(line.split())
    _client("./catalog")
    with subprocess.Popen(
        [COMMAND, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = None
            for line in server.stdout:
                if found := re.search(r"listening on (http://\S+)", line):
                    url = found[1]
                    break
            if url is None:
                raise SystemExit("serve: expected it to listen, it ended")
            _client(url)
            del os.environ["LANCE_NAMESPACE_ROOT"]
            listed = _command(["ls", "-R", "--json", "--url", url])
            assert {each["name"] for each in json.loads(listed)} >= {"shop", "shop.orders"}, listed
            _command(["tck", "--url", url, "--only", "create_namespace"])
        finally:
            server.terminate()


def _command(arguments: list[str]) -> str:
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _client(target: str) -> None:
    done = subprocess.run([sys.executable, "-c", CLIENT, target], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"client of {target}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
