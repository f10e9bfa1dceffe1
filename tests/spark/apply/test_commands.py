"""The job as a process: ended by a signal, and submitted to Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pyspark.sql import SparkSession
from tests.support.command_line import start_tailrace
from tests.support.crud_workload import run_crud
from tests.support.lake import TestLake, source_documents
from tests.support.waiting import eventually

from tailrace.embedded import ReplicaSet
from tailrace.spark.apply import control
from tailrace.spark.lake.delta import PACKAGE, SESSION_CONF

pytestmark = pytest.mark.xdist_group("spark")

Client = MongoClient[dict[str, Any]]
WITHIN_S = 300.0
JOB = "from tailrace.cli.app import main\n\nmain()\n"


@pytest.fixture
def target(
    spark: SparkSession, mongodb: ReplicaSet, database_name: str, tmp_path: Path
) -> TestLake:
    return TestLake(spark, mongodb.uri, tmp_path / "lake")


def test_a_job_ends_in_order_by_a_signal_and_goes_on_under_spark_submit(
    target: TestLake, mongodb_client: Client, database_name: str, tmp_path: Path
) -> None:
    database = mongodb_client[database_name]
    database.a.insert_many([{"_id": number} for number in range(10)])
    words = ["sync", target.uri, "--to", str(target.folder), "--namespaces", f"{database_name}.*"]
    process = start_tailrace(*words, "--interval", "500ms", "--master", "local[2]")
    log = target.folder / "changes" / "_delta_log"
    eventually(lambda: target.lake.exists(control.CONTROL), "the load is planned", WITHIN_S)
    database.a.insert_one({"_id": "later"})
    eventually(log.exists, "a batch is in", WITHIN_S)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0, said
    assert b"stopped" in said
    run_crud(database, 1, 100)

    job = tmp_path / "job.py"
    job.write_text(JOB)
    confs = [word for pair in SESSION_CONF.items() for word in ("--conf", "=".join(pair))]
    submit = Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [submit, "--master", "local[2]", "--packages", PACKAGE, *confs, job, *words, "--once"],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert target.documents() == source_documents(mongodb_client, database_name)
