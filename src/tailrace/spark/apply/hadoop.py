"""Small files on any path that Hadoop reads: what a query keeps beside its tables."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def read_text(spark: SparkSession, path: str) -> str | None:
    """A small file's text; None when there is no such file."""
    java: Any = spark._jvm
    place = java.org.apache.hadoop.fs.Path(path)
    files = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not files.exists(place):
        return None
    stream = files.open(place)
    try:
        return str(java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
