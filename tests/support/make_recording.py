"""Makes a recording of a random workload, on the server that tests start.

    TAILRACE_MONGOD=mongod python -m tests.support.make_recording SEED

Writes ``tests/data/recordings/<version>/workload.tar.zst``, in the form of the others:
so what one release does is kept, also where that release cannot be run.
"""

from __future__ import annotations

import io
import itertools
import json
import sys
import tarfile
from typing import Any

import zstandard
from tests.support.change_streams import now, server_stream, settle
from tests.support.ddl_workload import Workload
from tests.support.live_recordings import record
from tests.support.recordings import FOLDER
from tests.support.transaction_workload import SMALL_TRANSACTION_ENTRIES

from tailrace.embedded import ReplicaSet

STEPS = 70
SCOPES: list[dict[str, Any]] = [{"cluster": True}, {"db": "w_a"}, {"db": "w_b", "coll": "one"}]
IMAGES_IN_LOG: list[dict[str, Any]] = [
    {"fullDocument": "updateLookup"},
    {"fullDocumentBeforeChange": "whenAvailable"},
    {"fullDocumentBeforeChange": "required"},
]
OPTIONS: list[dict[str, Any]] = [
    {"showExpandedEvents": True},
    {"showSystemEvents": True},
    {"showExpandedEvents": True, "showSystemEvents": True},
    {"showRawUpdateDescription": True},
    {"fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable"},
    {"fullDocument": "required"},
    {"fullDocument": "updateLookup", "matchCollectionUUIDForUpdateLookup": True},
]


def main(seed: int) -> None:
    """Run the workload, record it, and pack it."""
    with ReplicaSet(parameters=SMALL_TRANSACTION_ENTRIES) as replica_set:
        client = replica_set.client()
        version = client.server_info()["versionArray"][:3]
        start = now(client)
        workload = Workload(client, seed, "w")
        workload.run(STEPS)
        until = settle(client)
        kept = record(client, start, until, "w_a", "w_b")
        files = {"oplog.bson": kept.oplog, "documents.bson": kept.documents}
        if kept.pre_images:
            files["preimages.bson"] = kept.pre_images
        streams = []
        scopes: list[dict[str, Any]] = [
            {"cluster": True},
            {"db": "w_a"},
            {"db": "w_b", "coll": "one"},
        ]
        options = [{}, *IMAGES_IN_LOG, *(OPTIONS if version[0] >= 6 else [])]
        for number, (scope, chosen) in enumerate(itertools.product(scopes, options)):
            namespace = ".".join(scope[part] for part in ("db", "coll") if part in scope) or None
            stage = {**chosen, "startAtOperationTime": start}
            seen = server_stream(client, namespace, stage, until=until)
            if seen.error:
                # An error takes the batch with it that it ends.
                seen = server_stream(client, namespace, stage, until=until, batch_size=1)
            files[f"stream-{number:02d}.bson"] = b"".join(seen.events)
            code, name = seen.error or (0, "")
            streams.append(
                {
                    "id": number,
                    "scope": scope,
                    "options": chosen,
                    "pipeline": [],
                    "events": len(seen.events),
                    "cursor_alive": not seen.ended,
                    "error": {"code": code, "codeName": name} if seen.error else None,
                }
            )
        times = {"start": [start.time, start.inc], "end": [until.time, until.inc]}
        meta = {"version": version, "scenario": "workload", "seed": seed, **times}
        files["meta.json"] = json.dumps({**meta, "streams": streams}, indent=1).encode()
        folder = FOLDER / ".".join(map(str, version))
        folder.mkdir(exist_ok=True)
        (folder / "workload.tar.zst").write_bytes(packed(files))


def packed(files: dict[str, bytes]) -> bytes:
    """The files as one archive, always the same for the same files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    return zstandard.ZstdCompressor(level=19).compress(buffer.getvalue())


if __name__ == "__main__":
    main(int(sys.argv[1]))
