"""What pyproject.toml cannot say: `migrations/` lies at the top and is installed inside `namespace_server.store`.

`pyspark_lance` is a module of its own, because Spark finds data sources by modules of that name.
"""

from setuptools import find_packages, setup

FOUND = ("lance_core*", "namespace_client*", "namespace_server*", "namespace_tck*", "spark_catalog*", "table_data*")
CLIENT = "openapi/client"

setup(
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
