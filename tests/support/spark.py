"""Spark for tests: one session, and so one JVM, for the worker that runs its tests.

A test that takes ``spark`` belongs to the group ``spark`` (``pytestmark =
pytest.mark.xdist_group("spark")``), so that only one worker pays for a JVM. The jars come
from Maven Central once and stay in Ivy's folder in the home directory. ``PYSPARK_PYTHON``
is set for this process: Spark's workers must be this interpreter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.spark.source.datasource import TailraceSource

DELTA_JAR = "io.delta:delta-spark_4.2_2.13:4.4.0"
SETTINGS = {
    "spark.jars.packages": DELTA_JAR,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session on two cores, with Delta and the source ``tailrace``."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder.master("local[2]").appName("tailrace tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    folder = tmp_path_factory.mktemp("warehouse")
    session = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(TailraceSource)
    yield session
    session.stop()
