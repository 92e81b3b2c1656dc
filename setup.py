"""What pyproject.toml cannot say: `migrations/` lies at the top and is installed inside `namespace_server.store`.

The other packages of this checkout are those of another distribution, which `client/setup.py` builds.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=("namespace_server*", "namespace_tck*")),
        "namespace_server.store.migrations",
        "namespace_server.store.migrations.versions",
    ],
    package_dir={"namespace_server.store.migrations": "migrations"},
)
