"""Compile the Java classes of the SQL catalog (`spark_java/`) against the jars of the installed pyspark, into a jar.

The jar is written to `spark_catalog/sql/lance-catalog.jar` and holds a hash of its sources: it is built again only when
they have changed. Needs a JDK, version 17 or newer (`scripts/java.sh --jdk`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JAR = ROOT / "spark_catalog" / "sql" / "lance-catalog.jar"
_SOURCES = ROOT / "spark_java"
_HASH_ENTRY = "META-INF/sources.sha256"
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def build(jar: Path = JAR) -> bool:
    """Write the jar unless it is of these sources. Whether it was written.

    Raises:
        FileNotFoundError: There is no pyspark, or no Java compiler.
        subprocess.CalledProcessError: The sources do not compile.
    """
    sources = sorted(_SOURCES.rglob("*.java"))
    wanted = _digest(sources)
    if _digest_of(jar) == wanted:
        return False
    command = [compiler(), "--release", "17", "-Xlint:all,-processing,-serial,-classfile", "-Werror", "-nowarn"]
    with tempfile.TemporaryDirectory() as target:
        classpath = str(pyspark_jars() / "*")
        subprocess.run([*command, "-cp", classpath, "-d", target, *map(str, sources)], check=True)
        _pack(Path(target), jar, wanted)
    return True


def pyspark_jars() -> Path:
    """The directory of the jars of the installed pyspark. Raises `FileNotFoundError`."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise FileNotFoundError("pyspark is not installed: expected it, to compile against its jars")
    return Path(found.origin).parent / "jars"


def compiler() -> str:
    """The Java compiler of JAVA_HOME or of the path. Raises `FileNotFoundError`."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "javac")] if home else []
    found = next(filter(None, map(shutil.which, [*candidates, "javac"])), None)
    if found is None:
        raise FileNotFoundError("javac was not found: install a JDK, version 17 or newer, or set JAVA_HOME to one")
    return found


def _digest(sources: list[Path]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def _digest_of(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(_HASH_ENTRY).decode()
    except (FileNotFoundError, zipfile.BadZipFile, KeyError):
        return None


def _pack(classes: Path, jar: Path, digest: str) -> None:
    unfinished = jar.with_suffix(f".{os.getpid()}.tmp")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\n\r\n")
        _add(archive, _HASH_ENTRY, digest.encode())
        for file in sorted(classes.rglob("*.class")):
            _add(archive, file.relative_to(classes).as_posix(), file.read_bytes())
    unfinished.replace(jar)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Entries have one date, so that the same sources give the same jar."""
    entry = zipfile.ZipInfo(name, _FIXED_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


if __name__ == "__main__":
    built = build()
    sys.stdout.write(f"{JAR.relative_to(ROOT)}: {'built' if built else 'is current'}\n")
