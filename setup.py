"""What pyproject.toml cannot say: `migrations/` lies at the top and is installed inside `namespace_server.store`.

`pyspark_lance` is a module of its own, because Spark finds data sources by modules of that name. The jar of the SQL
catalog is compiled where pyspark and a Java compiler are installed (with `--no-build-isolation`). Without them a jar
that was built before is packed, or none.
"""

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
        """Build the jar, then copy."""
        sys.path.insert(0, str(ROOT))
        try:
            from scripts.build_jar import build

            build()
        except (ImportError, FileNotFoundError) as error:
            self.announce(f"the jar of the SQL catalog was not built: {error}", level=3)
        finally:
            sys.path.remove(str(ROOT))
        super().run()


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
