"""What pyproject.toml cannot say: the packages lie beside this directory, and a wheel brings the jar for Spark.

`pyspark_lance` is a module of its own, because Spark finds data sources by modules of that name. The jar of the SQL
catalog is compiled with a wheel where pyspark and a Java compiler are (`--no-build-isolation`). Without them the wheel
has no SQL for Spark, whose sessions say so. With `LANCE_WHEEL_WITH_JAR` set it is not built then, as for a release.
With `LANCE_WHEEL_WITHOUT_JAR` nothing is compiled.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent.parent
FOUND = ("lance_core*", "namespace_client*", "spark_catalog*", "table_data*")
REST = "../openapi/client"


class BuildWithJar(build_py):
    """Build the jar, and copy the packages into an empty directory.

    Modules of an earlier build would get into the wheel otherwise.
    """

    def run(self) -> None:
        """Build the jar, then copy. An editable installation uses the jar of the source tree, if there is one."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
            if not os.environ.get("LANCE_WHEEL_WITHOUT_JAR"):
                self._build_jar()
        super().run()

    def _build_jar(self) -> None:
        sys.path.insert(0, str(ROOT))
        try:
            from scripts.build_jar import build

            build()
        except (ImportError, FileNotFoundError) as error:
            message = f"the jar of the SQL catalog of Spark cannot be built: {error}"
            if os.environ.get("LANCE_WHEEL_WITH_JAR"):
                raise SystemExit(
                    f"{message}. Build with pip's --no-build-isolation where pyspark and a JDK are"
                ) from error
            self.warn(f"{message}: this wheel has no SQL for Spark")
        finally:
            sys.path.remove(str(ROOT))


setup(
    cmdclass={"build_py": BuildWithJar},
    packages=[*find_packages("..", include=FOUND), *find_packages(REST)],
    py_modules=["pyspark_lance"],
    package_dir={"": "..", "lance_namespace_server_client": f"{REST}/lance_namespace_server_client"},
)
