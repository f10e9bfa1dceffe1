"""The pipeline on Spark: a deployment's changes as a source, and tables kept equal to it.

``source`` reads the log in micro-batches at consistent cuts. The only room that imports
pyspark and pyarrow; nothing here interprets an oplog entry by itself.
"""
