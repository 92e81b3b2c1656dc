"""What pyproject.toml cannot say: `migrations/` lies at the top and is installed inside `namespace_server.store`.

`pyspark_lance` is a module of its own, because Spark finds data sources by modules of that name. The jar of the SQL
catalog is compiled with every wheel, which needs pyspark and a Java compiler (`--no-build-isolation`). Without them the
build fails unless `LANCE_WHEEL_WITHOUT_JAR` is set: such a wheel installs, and its sessions have no SQL.
"""

import os
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
FOUND = ("lance_core*", "namespace_client*", "namespace_server*", "namespace_tck*", "spark_catalog*", "table_data*")
CLIENT = "openapi/client"


class BuildWithJar(build_py):
    """Build the jar before the packages are copied."""

    def run(self) -> None:
        """Build the jar, then copy. An editable installation uses the jar of the source tree, if there is one."""
        if not self.editable_mode and not os.environ.get("LANCE_WHEEL_WITHOUT_JAR"):
            self._build_jar()
        super().run()

    def _build_jar(self) -> None:
        sys.path.insert(0, str(ROOT))
        try:
            from scripts.build_jar import build

            build()
        except (ImportError, FileNotFoundError) as error:
            raise SystemExit(
                f"the jar of the SQL catalog of Spark cannot be built: {error}. Build with pip's --no-build-isolation, "
                "or set LANCE_WHEEL_WITHOUT_JAR=1 for a wheel without SQL on Spark"
            ) from error
        finally:
            sys.path.remove(str(ROOT))


setup(
    cmdclass={"build_py": BuildWithJar},
    packages=[
        *find_packages(include=FOUND),
        *find_packages(CLIENT),
        "namespace_server.store.migrations",
        "namespace_server.store.migrations.versions",
    ],
    py_modules=["pyspark_lance"],
    package_dir={
        "lance_namespace_server_client": f"{CLIENT}/lance_namespace_server_client",
        "namespace_server.store.migrations": "migrations",
    },
)
