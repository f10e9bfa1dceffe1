"""A Spark session for the command line: Delta in it, quiet, and no more tasks than work.

The JVM's words go to a log file, whose end is shown when Spark does not start. Under
spark-submit the session is the one that is there, with its master and its settings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tailrace.errors import OperatorError
from tailrace.spark.lake.delta import PACKAGE, SESSION_CONF

LOCAL = "local[*]"
LAST_WORDS = 5
"""Lines of the log that an error shows."""
_SECRETS = "(?i)secret|password|token|access[.]?key|ur[il]"
"""Options whose values Spark must not show; a connection string may hold a password."""
DEFAULTS = {
    "spark.app.name": "tailrace",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "8",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.stateStore.stateSchemaCheck": "false",
    "spark.redaction.regex": _SECRETS,
    "spark.sql.redaction.options.regex": _SECRETS,
    "spark.jars.packages": PACKAGE,
    **SESSION_CONF,
}


def open_session(
    master: str | None = LOCAL, conf: Mapping[str, str] | None = None, *, log: Path | None = None
) -> SparkSession:
    """The session of this process; ``master`` None takes the one that was submitted to."""
    settings = SparkConf()
    for name, value in {**DEFAULTS, **(conf or {})}.items():
        settings.set(name, value)
    if master is None:
        return SparkSession.builder.config(conf=settings).getOrCreate()
    settings.setMaster(master)
    words = log or Path(tempfile.mkdtemp(prefix="tailrace-spark-")) / "spark.log"
    try:
        with words.open("ab") as file:
            gateway = launch_gateway(settings, {"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]
        context = SparkContext(gateway=gateway, conf=settings)
    except (PySparkException, OSError) as error:
        said = words.read_text("utf-8", "replace").splitlines()[-LAST_WORDS:]
        raise OperatorError(
            f"Spark did not start: {error}; its log {words} ends with: {' / '.join(said)}",
            hint="see the log",
        ) from error
    context.setLogLevel("WARN")
    return SparkSession.builder.getOrCreate()
