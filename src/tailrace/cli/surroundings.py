"""What Spark needs of the machine: Java 17 or newer, and this interpreter for its workers.

Looked at before anything is started, so that what is missing is one line that says what
to install. Spark's parts of the package are brought in by name, since only the ``spark``
extra can.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tailrace.errors import MissingServer

OLDEST_JAVA = 17
JAVA_S = 30
"""How long ``java -version`` may take on a busy machine."""
_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has started the JVM already."""


def spark_part(name: str) -> Any:
    """A module of the ``spark`` room, its environment made ready."""
    try:
        module = importlib.import_module(f"tailrace.spark.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "tailrace":
            raise
        raise MissingServer(
            f"this needs Spark ({error.name} is not installed): pip install 'tailrace[spark]'",
            extra="spark",
        ) from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return module


def submitted() -> bool:
    """Whether spark-submit runs this."""
    return SUBMITTED in os.environ


def check_java() -> int:
    """Java's version; an error in one line when there is none that Spark starts on."""
    version = java_version()
    if version is None:
        raise MissingServer(
            f"Spark needs Java {OLDEST_JAVA} or newer, and there is none: install it "
            "(Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: "
            "brew install openjdk@17), or set JAVA_HOME",
            extra="java",
        )
    if version < OLDEST_JAVA:
        raise MissingServer(
            f"Spark needs Java {OLDEST_JAVA} or newer, and this is Java {version}: set JAVA_HOME "
            "to a newer one",
            extra="java",
        )
    return version


def java_version() -> int | None:
    """The major version of the Java that Spark would start; None without one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603  (the operator's own Java)
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stderr + done.stdout)
    return int(found[1]) if found else None
