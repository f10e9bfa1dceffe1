"""The rows of the source: their columns, documented, typed and stable.

A row is one event of the deployment's change stream (cluster scope, default options).
(``shard``, ``token``) identifies it; within a batch and shard rows stand in token order.
Documents are canonical Extended JSON (``documents=json``, the default; lossless) or the
BSON bytes themselves (``documents=bson``), unchanged since they stood in the log.

Columns are only ever added, at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

DOCUMENT = "document"
"""The type of a column that holds a document: text or bytes, as ``documents`` says."""
TRANSACTION = "transaction"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its type in Spark's words, what it holds, whether always."""

    name: str
    kind: str
    holds: str
    always: bool = False


COLUMNS: tuple[Column, ...] = (
    Column("shard", "STRING", "the shard's (replica set's) name", always=True),
    Column("token", "STRING", "the resume token's `_data`", always=True),
    Column("cluster_time", "TIMESTAMP", "the event's `clusterTime`: its second", always=True),
    Column("cluster_increment", "BIGINT", "and its place in that second", always=True),
    Column(
        "effective_time",
        "TIMESTAMP",
        "when a snapshot read begins to see it: `commitTimestamp` of a prepared transaction, "
        "the event's own time of all else; which batch it is in is decided by it",
        always=True,
    ),
    Column("effective_increment", "BIGINT", "and its place in that second", always=True),
    Column("ordinal", "INT", "the place within its transaction, from 0; 0 outside", always=True),
    Column("wall_time", "TIMESTAMP", "the server's clock when it was written"),
    Column("operation", "STRING", "`operationType`: insert, update, drop, …", always=True),
    Column("db", "STRING", "the database"),
    Column("coll", "STRING", "the collection; null for `dropDatabase`"),
    Column("collection_uuid", "STRING", "the collection's UUID, where the log says it"),
    Column("document_key", DOCUMENT, "`documentKey` of a write"),
    Column("full_document", DOCUMENT, "the document of an insert or a replace"),
    Column(
        "before", DOCUMENT, "the document before the change, if `fullDocumentBeforeChange` asks"
    ),
    Column("update_description", DOCUMENT, "`updateDescription` of an update"),
    Column(
        "raw_diff",
        DOCUMENT,
        "of an update, the whole `o` of its oplog entry: what rebuilds the document byte for byte",
    ),
    Column("txn", TRANSACTION, "the transaction's `lsid` and `txnNumber`; null outside"),
    Column("other", DOCUMENT, "all further fields of the event, such as `to` of a rename"),
)
"""The columns, in their order."""


def spark_schema(documents: str) -> str:
    """The columns as Spark's DDL; ``documents`` is ``json`` or ``bson``."""
    document = "BINARY" if documents == "bson" else "STRING"
    kinds = {DOCUMENT: document, TRANSACTION: f"STRUCT<lsid: {document}, number: BIGINT>"}
    return ", ".join(f"{column.name} {kinds.get(column.kind, column.kind)}" for column in COLUMNS)


def arrow_schema(documents: str) -> pa.Schema:
    """The columns as Arrow sees them."""
    document = pa.binary() if documents == "bson" else pa.string()
    kinds = {
        "STRING": pa.string(),
        "BIGINT": pa.int64(),
        "INT": pa.int32(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        DOCUMENT: document,
        TRANSACTION: pa.struct([("lsid", document), ("number", pa.int64())]),
    }
    return pa.schema([(column.name, kinds[column.kind]) for column in COLUMNS])
