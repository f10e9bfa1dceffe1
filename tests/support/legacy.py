"""A runner for the test format before the unified one, in which 1.5.1 and 1.6.0 have theirs.

Expectations compare a prefix of what was sent, and a part of each document; 42 means
"anything, but there". Between a run on a server and one on the fake, only the clients
differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymongo import MongoClient
from pymongo.errors import OperationFailure
from tests.support.fake_deployment import FakeDeployment, FakeTarget
from tests.support.fake_runs import fail_point_of
from tests.support.testdata import shared_json
from tests.support.unified import HEARTBEAT_MS, MAJORITY, Observer, admits, decode, version_tuple

import tailrace

Document = dict[str, Any]
FOLDERS = {"legacy-v1.5.1": "1.5.1", "legacy-v1.6.0": "1.6.0", "legacy": "current"}
"""Each folder of the format, and the profile under which its cases hold."""
FILES = {
    "legacy-v1.5.1": ("change-streams", "change-streams-errors"),
    "legacy-v1.6.0": ("change-streams", "change-streams-errors"),
    "legacy": (
        "change-streams",
        "change-streams-errors",
        "change-streams-resume-allowlist",
        "change-streams-resume-errorLabels",
    ),
}
LAST_VERSIONS = {"change stream resumes after StaleShardVersion": "6.0.99"}
"""What the old files could not know and today's say: newer servers give it no label."""
ANYTHING = (42, "42")
SNAKE = {"batchSize": "batch_size"}
VERSIONS = ("6.0.5", "4.2.24", "4.0.10", "3.6.0")


@dataclass(frozen=True)
class LegacyCase:
    """One case of the old format."""

    folder: str
    file: str
    test: Document
    shared: Document

    @property
    def name(self) -> str:
        return f"{self.folder}/{self.file}: {self.test['description']}"

    @property
    def profile(self) -> str:
        return FOLDERS[self.folder]

    def admitted(self, version: str, topology: str) -> bool:
        requirement = {
            "minServerVersion": self.test.get("minServerVersion"),
            "maxServerVersion": self.test.get(
                "maxServerVersion", LAST_VERSIONS.get(self.test["description"])
            ),
            "topologies": self.test["topology"],
        }
        return admits(requirement, version_tuple(version), topology)


def legacy_cases() -> list[LegacyCase]:
    """All cases of the old format."""
    found = []
    for folder, names in FILES.items():
        for name in names:
            content = shared_json(f"spec-tests/{folder}/{name}.json")
            shared = {key: value for key, value in content.items() if key != "tests"}
            found += [LegacyCase(folder, name, test, shared) for test in content["tests"]]
    return found


def run_legacy_live(case: LegacyCase, uri: str, client: MongoClient[Any]) -> None:
    """Run a case on a server."""
    for database, collection in _namespaces(case):
        client.drop_database(database)
        client.get_database(database, write_concern=MAJORITY).create_collection(collection)
    point = case.test.get("failPoint")
    observer = Observer(("killCursors",))
    with MongoClient[Any](
        uri, event_listeners=[observer], heartbeatFrequencyMS=HEARTBEAT_MS
    ) as watched:
        try:
            if point:
                client.admin.command(decode(point))
            _perform(case, watched, client, _watch_live(case))
        finally:
            if point:
                off = {"configureFailPoint": point["configureFailPoint"], "mode": "off"}
                client.admin.command(off)
        _check_commands(case, observer.commands)


def run_legacy_on_fake(case: LegacyCase) -> str:
    """Run a case on the first fake that fits it; says which that was."""
    topology = case.test["topology"][0]
    version = next(each for each in VERSIONS if case.admitted(each, topology))
    deployment = FakeDeployment(version_tuple(version), topology)
    if "failPoint" in case.test:
        deployment.fail_points.append(fail_point_of(decode(case.test["failPoint"])))
    target = FakeTarget(deployment)
    _perform(
        case,
        target,
        target,
        lambda on, pipeline, **given: on.watch(pipeline, resume_policy=case.profile, **given),
    )
    _check_commands(case, [each for each in deployment.commands if each[0] != "killCursors"])
    return f"fake {version} {topology}"


def _watch_live(case: LegacyCase) -> Callable[..., Any]:
    def watch(on: Any, pipeline: Any, **given: Any) -> Any:
        return tailrace.watch(on, pipeline, resume_policy=case.profile, **given)

    return watch


def _namespaces(case: LegacyCase) -> list[tuple[str, str]]:
    shared = case.shared
    names = [(shared["database_name"], shared["collection_name"])]
    if "database2_name" in shared:
        names.append((shared["database2_name"], shared["collection2_name"]))
    return names


def _perform(case: LegacyCase, watched: Any, writer: Any, watch: Callable[..., Any]) -> None:
    test = decode(case.test)
    database, collection = _namespaces(case)[0]
    target = {
        "client": watched,
        "database": watched[database],
        "collection": watched[database][collection],
    }[test["target"]]
    options = {SNAKE.get(key, key): value for key, value in test["changeStreamOptions"].items()}
    result = test["result"]
    try:
        with watch(target, test["changeStreamPipeline"], **options) as stream:
            for operation in test["operations"]:
                _operate(writer, operation)
            seen = [stream.next() for _ in result.get("success", ())]
            if "error" in result:
                stream.next()
    except OperationFailure as error:
        assert "error" in result, repr(error)
        assert error.code == result["error"]["code"]
        for label in result["error"].get("errorLabels", ()):
            assert error.has_error_label(label)
    else:
        assert "error" not in result
        check_part(result["success"], seen)


def _operate(writer: Any, operation: Document) -> None:
    target = writer[operation["database"]][operation["collection"]]
    given = operation.get("arguments", {})
    OPERATIONS[operation["name"]](target, given)


OPERATIONS: Mapping[str, Callable[[Any, Document], Any]] = {
    "insertOne": lambda target, given: target.insert_one(given["document"]),
    "updateOne": lambda target, given: target.update_one(given["filter"], given["update"]),
    "replaceOne": lambda target, given: target.replace_one(given["filter"], given["replacement"]),
    "deleteOne": lambda target, given: target.delete_one(given["filter"]),
    "rename": lambda target, given: target.rename(given["to"]),
    "drop": lambda target, given: target.drop(),
}


def _check_commands(case: LegacyCase, commands: Sequence[tuple[str, str, Document]]) -> None:
    for at, expected in enumerate(decode(case.test.get("expectations") or [])):
        one = expected["command_started_event"]
        name, database, command = commands[at]
        assert (one["command_name"], one["database_name"]) == (name, database)
        check_part(one["command"], command)


def check_part(expected: Any, actual: Any, path: str = "") -> None:
    """Fail unless what is expected is a part of what is there."""
    if isinstance(expected, int | str) and expected in ANYTHING:
        assert actual is not None, f"{path} is not there"
    elif isinstance(expected, Mapping):
        for key, value in expected.items():
            check_part(value, actual.get(key), f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(actual) >= len(expected), f"{path}: {actual!r} is too short"
        for at, value in enumerate(expected):
            check_part(value, actual[at], f"{path}[{at}]")
    else:
        assert actual == expected, f"{path}: {actual!r} is not {expected!r}"
