"""What pyproject.toml cannot say: `migrations/` lies at the top and is installed inside `namespace_server.store`.

The other packages of this checkout are those of another distribution, which `client/setup.py` builds.
"""

import shutil

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class BuildAnew(build_py):
    """Copy the packages into an empty directory: modules of an earlier build would get into the wheel."""

    def run(self) -> None:
        """Empty the directory, then copy. An editable installation has none."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    cmdclass={"build_py": BuildAnew},
    packages=[
        *find_packages(include=("namespace_console*", "namespace_mcp*", "namespace_server*", "namespace_tck*")),
        "namespace_server.store.migrations",
        "namespace_server.store.migrations.versions",
    ],
    package_dir={"namespace_server.store.migrations": "migrations"},
)
