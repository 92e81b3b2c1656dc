"""Tables lie below the root, apart from each other, and refer to nothing outside unless an operator allows it."""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import InvalidInputError

from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.transaction.operations import UpdateBases, encode_transaction
from namespace_server.directory.catalog import CatalogOptions
from namespace_server.directory.doctor import Examination
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.verifying.allowed_locations import AllowedLocations
from tests.directory.tables import QUIET, Capture, Ground, as_operation, rows

T = ["g", "t"]
OUTSIDE = [
    "/etc",
    "/",
    "s3://elsewhere",
    "http://169.254.169.254/",
    "",
    "\0",
    "a\0b",
    "relative/path",
    "../up",
    "file://other-host{root}/t",
    "file://{root}/../up",
    "file://{root}/%2e%2e/up",
    "{root}/../up",
    "{root}-beside",
    "{root}/t?versionId=1",
    "FILE://{root}/t",
]


def add_base(path: str) -> pb.Transaction:
    return encode_transaction(UpdateBases((pb.BasePath(path=path),)), read_version=1, uuid=str(uuid.uuid4()))


def allowing(root: Path, *prefixes: str) -> Ground:
    return Ground(root, options=CatalogOptions(sweep_interval=QUIET.sweep_interval, allowed_locations=prefixes))


class TestBasePaths:
    @pytest.mark.parametrize("path", [path for path in OUTSIDE if "?" not in path])
    def test_a_transaction(self, ground: Ground, path: str) -> None:
        ground.make_table(*T)

        with pytest.raises(InvalidInputError, match="base path"):
            ground.batch(as_operation(T, add_base(path.format(root=ground.root))))
        assert ground.head(T) == 1

    @pytest.mark.parametrize("spelling", ["{root}/shared", "file://{root}/shared"])
    def test_below_the_root(self, ground: Ground, spelling: str) -> None:
        ground.make_table(*T)

        ground.batch(as_operation(T, add_base(spelling.format(root=ground.root))))

        assert ground.head(T) == 2

    def test_below_an_allowed_prefix(self, ground: Ground, tmp_path: Path) -> None:
        ground.make_table(*T)
        again = allowing(ground.root, f"{tmp_path}/lake", "s3://other/shared/")

        for version, path in enumerate((f"{tmp_path}/lake/x", "s3://other/shared", "s3://other/shared/a%20b"), 2):
            again.batch(as_operation(T, add_base(path)))
            assert again.head(T) == version
        for path in (
            f"{tmp_path}/lakes",
            "s3://other/sharedx",
            "s3://others/shared",
            "s3://other",
            "gs://other/shared",
        ):
            with pytest.raises(InvalidInputError, match="lies outside the catalog's root and its allowed_locations"):
                again.batch(as_operation(T, add_base(path)))

    def test_a_manifest_that_a_client_staged(self, ground: Ground, tmp_path: Path) -> None:
        bases = [lance.DatasetBasePath(path=str(tmp_path / "beside"), name="beside")]
        (tmp_path / "beside").mkdir()
        capture = Capture(ground.namespace)
        lance.write_dataset(
            rows(0, 3),
            namespace_client=capture,
            table_id=T,
            mode="create",
            initial_bases=bases,
            target_bases=["beside"],
        )
        [request] = capture.captured

        with pytest.raises(InvalidInputError, match=r"version 1 of table g.t: base path '.*beside' lies outside"):
            ground.batch({"create_table_version": request})
        allowing(ground.root, str(tmp_path / "beside")).batch({"create_table_version": request})

        assert ground.ids(T) == [0, 1, 2]

    def test_a_table_that_has_one_stays_writable(self, ground: Ground, tmp_path: Path) -> None:
        ground.make_table(*T)
        allowing(ground.root, str(tmp_path)).batch(as_operation(T, add_base(f"{tmp_path}/beside")))
        again = ground.again()

        again.write(T, rows(3, 5))
        again.batch(again.transaction(T, rows(5, 6)))

        assert again.ids(T) == [0, 1, 2, 3, 4, 5]

    def test_a_symbolic_link_below_the_root(self, ground: Ground, tmp_path: Path) -> None:
        ground.make_table(*T)
        (tmp_path / "beside").mkdir()
        (ground.root / "link").symlink_to(tmp_path / "beside")

        with pytest.raises(InvalidInputError, match="by a symbolic link"):
            ground.batch(as_operation(T, add_base(f"{ground.root}/link/x")))
        allowing(ground.root, str(tmp_path / "beside")).batch(as_operation(T, add_base(f"{ground.root}/link/x")))


class TestRegister:
    def register(self, ground: Ground, location: str) -> None:
        ground.call("register_table", id=["g", "r"], location=location)

    def dataset(self, ground: Ground, location: str, count: int = 3) -> lance.LanceDataset:
        place = location.removeprefix("../")
        root = ground.root if place == location else ground.root.parent
        return lance.write_dataset(rows(0, count), str(root / place))

    def test_a_dataset_that_does_not_exist(self, ground: Ground) -> None:
        (ground.root / "empty").mkdir()
        for location in ("nowhere", "empty"):
            with pytest.raises(InvalidInputError, match="holds no dataset"):
                self.register(ground, location)

    @pytest.mark.parametrize("below", ["_versions", "data", "tree/dev", "x", "x/y"])
    def test_inside_a_table_of_the_catalog(self, ground: Ground, below: str) -> None:
        ground.make_table(*T)
        self.dataset(ground, f"{ground.location(T)}/{below}")
        with pytest.raises(InvalidInputError, match="lies inside"):
            self.register(ground, f"{ground.location(T)}/{below}")

    @pytest.mark.parametrize("below", ["data", "tree/dev", "x/y"])
    def test_inside_a_registered_table_or_one_that_was(self, ground: Ground, below: str) -> None:
        self.dataset(ground, "mine")
        self.dataset(ground, f"mine/{below}")
        with pytest.raises(InvalidInputError, match=r"lies inside the dataset at 'mine'"):
            self.register(ground, f"mine/{below}")
        ground.call("register_table", id=T, location="mine")
        with pytest.raises(InvalidInputError, match=r"lies inside that of table g.t, 'mine'"):
            self.register(ground, f"mine/{below}")
        ground.call("drop_table", id=T)
        shutil.rmtree(ground.root / "mine/_versions")
        with pytest.raises(InvalidInputError, match=r"lies inside 'mine', that of a table which was dropped"):
            self.register(ground, f"mine/{below}")

    def test_around_another_table(self, ground: Ground) -> None:
        self.dataset(ground, "a/b/mine")
        ground.call("register_table", id=T, location="a/b/mine")
        self.dataset(ground, "a")
        self.dataset(ground, "a/b-beside")
        with pytest.raises(InvalidInputError, match=r"contains that of table g.t"):
            self.register(ground, "a")
        shutil.rmtree(ground.root / "a/_versions")
        self.register(ground, "a/b-beside")

    def test_a_symbolic_link_out_of_the_root(self, ground: Ground, tmp_path: Path) -> None:
        self.dataset(ground, "../beside")
        (ground.root / "link").symlink_to(tmp_path / "beside")
        with pytest.raises(InvalidInputError, match="'link' leads out of the catalog's root"):
            self.register(ground, "link")
        self.register(allowing(ground.root, str(tmp_path / "beside")), "link")

    @pytest.mark.parametrize("alias", ["alias", "d/alias", "up/{name}", "parts"])
    @pytest.mark.parametrize("is_table", [True, False])
    def test_a_place_in_the_root_has_one_name(self, ground: Ground, alias: str, is_table: bool) -> None:
        """Also one that is no table yet: it may become one by its own name."""
        if is_table:
            ground.make_table(*T)
        else:
            self.dataset(ground, "mine")
        location = ground.root / (ground.location(T) if is_table else "mine")
        link = ground.root / alias.format(name=location.name)
        if alias == "parts":
            link.mkdir()
            (link / "_versions").symlink_to(location / "_versions")
            (link / "data").symlink_to(location / "data")
        elif alias.startswith("up"):
            link.parent.symlink_to(ground.root)
        else:
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(location)
        with pytest.raises(InvalidInputError, match=f"leads to '{re.escape(location.name)}.* expected that place"):
            self.register(ground, str(link.relative_to(ground.root)))
        if not is_table:
            self.register(ground, "mine")

    def test_a_link_within_the_dataset(self, ground: Ground) -> None:
        self.dataset(ground, "mine")
        (ground.root / "mine/data").rename(ground.root / "mine/rows")
        (ground.root / "mine/data").symlink_to(ground.root / "mine/rows")
        self.register(ground, "mine")

    @pytest.mark.parametrize("second", ["link", "around", "parts"])
    def test_a_place_outside_of_the_root_has_one_name(self, ground: Ground, tmp_path: Path, second: str) -> None:
        self.dataset(ground, "../many/beside")
        beside, ground = tmp_path / "many/beside", allowing(ground.root, str(tmp_path / "many"))
        (ground.root / "first").symlink_to(beside)
        ground.call("register_table", id=T, location="first")
        if second == "parts":
            (ground.root / second).mkdir()
            (ground.root / second / "_versions").symlink_to(beside / "_versions")
        else:
            (ground.root / second).symlink_to(beside if second == "link" else beside.parent)
        with pytest.raises(InvalidInputError, match=f"'{second}.*leads by a symbolic link to where 'first' does"):
            self.register(ground, second)
        ground.call("deregister_table", id=T)
        ground.call("register_table", id=T, location="first")

    def test_a_symbolic_link_in_the_dataset(self, ground: Ground, tmp_path: Path) -> None:
        self.dataset(ground, "mine")
        shutil.move(ground.root / "mine/data", tmp_path / "data")
        (ground.root / "mine/data").symlink_to(tmp_path / "data")
        with pytest.raises(InvalidInputError, match="'mine/data' leads out of the catalog's root"):
            self.register(ground, "mine")

    def test_a_shallow_clone(self, ground: Ground, tmp_path: Path) -> None:
        self.dataset(ground, "mine").shallow_clone(str(ground.root / "copy"), 1)
        self.dataset(ground, "../beside").shallow_clone(str(ground.root / "other"), 1)

        self.register(ground, "copy")

        assert ground.ids(["g", "r"]) == [0, 1, 2]
        ground.write(["g", "r"], rows(3, 4))
        with pytest.raises(InvalidInputError, match=r"version 1 has the base path '.*beside' lies outside"):
            ground.call("register_table", id=T, location="other")
        allowing(ground.root, str(tmp_path)).call("register_table", id=T, location="other")


class TestLinks:
    """A file that a client adds, or a directory above it, is a symbolic link out of the root."""

    @pytest.fixture
    def outside(self, tmp_path: Path) -> Path:
        lance.write_dataset(rows(7, 9), tmp_path / "outside")
        return tmp_path / "outside"

    def added(self, ground: Ground) -> tuple[dict[str, Any], Path]:
        """A transaction on a table, and the data file that it adds."""
        data = ground.root / ground.location(T) / "data"
        before = set(data.iterdir())
        operation = ground.transaction(T, rows(3, 5))
        [file] = set(data.iterdir()) - before
        return operation, file

    def test_a_data_file(self, ground: Ground, outside: Path, tmp_path: Path) -> None:
        ground.make_table(*T)
        operation, file = self.added(ground)
        [secret] = (outside / "data").iterdir()
        shutil.copy(file, secret)
        file.unlink()
        file.symlink_to(secret)
        with pytest.raises(
            InvalidInputError, match=f"data/{file.name}' leads out of the catalog's root .*symbolic link"
        ):
            ground.batch(operation)
        assert allowing(ground.root, str(tmp_path)).batch(operation)
        assert [each.code for each in Examination(ground.store).examine().findings] == ["link-out-of-root"]

    def test_a_directory_of_data_files(self, ground: Ground, outside: Path) -> None:
        ground.make_table(*T)
        operation, file = self.added(ground)
        file.parent.rename(outside / "moved")
        file.parent.symlink_to(outside / "moved")
        with pytest.raises(InvalidInputError, match="/data' leads out of the catalog's root"):
            ground.batch(operation)
        found = Examination(ground.store).examine().findings
        assert [(each.code, each.place) for each in found] == [("link-out-of-root", f"{ground.location(T)}/data")]

    def test_a_staged_manifest(self, ground: Ground, outside: Path) -> None:
        ground.make_table(*T)
        operation = ground.stage(T, rows(3, 5))
        request = operation["create_table_version"]
        staged = ground.root / str(ground.store.relative_path(request["manifest_path"]))
        staged.rename(outside / "manifest")
        staged.symlink_to(outside / "manifest")
        with pytest.raises(InvalidInputError, match="leads out of the catalog's root"):
            ground.batch(operation)

    def test_a_link_within_the_root(self, ground: Ground) -> None:
        ground.make_table(*T)
        operation, file = self.added(ground)
        moved = file.with_name("moved.lance")
        file.rename(moved)
        file.symlink_to(moved)
        ground.batch(operation)
        assert ground.ids(T) == [0, 1, 2, 3, 4]


class TestPlaces:
    @pytest.mark.parametrize("path", OUTSIDE)
    def test_outside(self, tmp_path: Path, path: str) -> None:
        allowed = AllowedLocations(LocalStore(tmp_path / "root"))

        assert (allowed.refusal(path.format(root=tmp_path / "root")) is None) == ("?" in path)

    def test_a_root_behind_a_symbolic_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        allowed = AllowedLocations(LocalStore(tmp_path / "link"))

        assert allowed.refusal(f"{tmp_path}/link/t") is None
        assert allowed.refusal(f"{tmp_path}/real/t") is None

    def test_a_root_that_is_no_directory(self) -> None:
        allowed = AllowedLocations(MemoryStore("m"))

        assert allowed.refusal("memory://m/t") is None
        assert allowed.refusal("memory://n/t") is not None
        assert allowed.refusal("/t") is not None
        assert allowed.link_refusal("t") is None

    @pytest.mark.parametrize("prefix", ["relative", "/a/../b", "s3://b/p?x"])
    def test_a_prefix_that_is_none(self, tmp_path: Path, prefix: str) -> None:
        with pytest.raises(ValueError, match="expected"):
            DirectoryNamespace(root=str(tmp_path), allowed_locations=f"/fine,{prefix}")

    def test_the_property(self, tmp_path: Path) -> None:
        namespace = DirectoryNamespace(root=str(tmp_path), allowed_locations="/a, s3://b/c ,")

        assert namespace.catalog.options.allowed_locations == ("/a", "s3://b/c")
        namespace = DirectoryNamespace(root=str(tmp_path), allowed_locations='["/a,b", "s3://b/c"]')
        assert namespace.catalog.options.allowed_locations == ("/a,b", "s3://b/c")
        with pytest.raises(ValueError, match="property allowed_locations: expected strings"):
            DirectoryNamespace(root=str(tmp_path), allowed_locations="[1]")
