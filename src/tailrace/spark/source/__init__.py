"""The Spark source ``tailrace``: offsets, cuts, slices, rows.

``offsets``, ``cuts`` and ``options`` are pure: no pyspark, no server. ``schema`` is the
public form of a row. What reads the log and what joins it to Spark lies beside them.
"""
