"""The lake's table format behind a small port; Delta is the first that fills it."""

from tailrace.spark.lake.delta import DeltaLake
from tailrace.spark.lake.port import Commit, Lake

__all__ = ["Commit", "DeltaLake", "Lake"]
