"""A runner for the unified test format, as far as change streams need it.

``cases`` reads files; ``admitted`` says why a deployment does not run a case;
``run_case`` runs one: entities, initial data, operations, events. ``createChangeStream``
is ``tailrace.watch``; everything else is PyMongo.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bson.json_util import CANONICAL_JSON_OPTIONS, object_hook
from pymongo import MongoClient, WriteConcern
from pymongo.errors import OperationFailure, PyMongoError
from pymongo.monitoring import CommandListener
from tests.support.matching import check_match

import tailrace

Document = dict[str, Any]
MAJORITY = WriteConcern("majority")
HEARTBEAT_MS = 500
"""A fail point's "not primary" is believed until the next heartbeat, 10 s by default."""


@dataclass(frozen=True)
class Case:
    """One official case: its file, its test, and what the file says for all of them."""

    file: str
    description: str
    test: Document
    shared: Document

    @property
    def name(self) -> str:
        return f"{self.file}: {self.description}"

    @property
    def requirements(self) -> list[list[Document]]:
        return [
            each
            for each in (self.shared.get("runOnRequirements"), self.test.get("runOnRequirements"))
            if each
        ]


def cases(file: str, content: Document) -> list[Case]:
    """The cases of one file."""
    shared = {key: value for key, value in content.items() if key != "tests"}
    return [Case(file, test["description"], test, shared) for test in content["tests"]]


def version_tuple(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in text.split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


def admits(requirement: Document, version: tuple[int, ...], topology: str) -> bool:
    """Whether a deployment is what one requirement asks for."""
    lowest, highest = requirement.get("minServerVersion"), requirement.get("maxServerVersion")
    return (
        (lowest is None or version >= version_tuple(lowest))
        and (highest is None or version <= version_tuple(highest))
        and topology in requirement.get("topologies", [topology])
    )


def admitted(case: Case, version: str, topology: str) -> bool:
    """Whether a deployment runs a case."""
    found = version_tuple(version)
    return all(
        any(admits(requirement, found, topology) for requirement in either)
        for either in case.requirements
    )


class Observer(CommandListener):
    """The commands that a client started, but for the ones that a case ignores."""

    HIDDEN = frozenset({"hello", "isMaster", "ping", "configureFailPoint", "endSessions"})

    def __init__(self, ignored: Sequence[str]) -> None:
        self._ignored = self.HIDDEN | set(ignored)
        self.commands: list[tuple[str, str, Document]] = []

    def started(self, event: Any) -> None:
        self.saw(event.command_name, event.database_name, copy.copy(event.command))

    def saw(self, name: str, database: str, command: Document) -> None:
        """Keep a command, unless it is to be ignored."""
        if name not in self._ignored:
            self.commands.append((name, database, command))

    def succeeded(self, event: Any) -> None: ...

    def failed(self, event: Any) -> None: ...


@dataclass
class Run:
    """One run of a case against a deployment."""

    uri: str
    watch: Callable[..., Any] = tailrace.watch
    entities: dict[str, Any] = field(default_factory=dict)
    observers: dict[str, Observer] = field(default_factory=dict)
    closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def create(self, entity: Document) -> None:
        """Make one entity."""
        ((kind, said),) = entity.items()
        self.entities[said["id"]] = getattr(self, f"_make_{kind}")(said)

    def _make_client(self, said: Document) -> MongoClient[Any]:
        observer = Observer(said.get("ignoreCommandMonitoringEvents", ()))
        if "commandStartedEvent" in said.get("observeEvents", ()):
            self.observers[said["id"]] = observer
        client: MongoClient[Any] = MongoClient(
            self.uri,
            event_listeners=[observer],
            heartbeatFrequencyMS=HEARTBEAT_MS,
            **said.get("uriOptions", {}),
        )
        self.closing.callback(client.close)
        return client

    def _make_database(self, said: Document) -> Any:
        return self.entities[said["client"]][said["databaseName"]]

    def _make_collection(self, said: Document) -> Any:
        database = self.entities[said["database"]]
        return database[said["collectionName"]]

    def operate(self, operation: Document) -> None:
        """Run one operation, and compare what comes of it."""
        arguments = copy.deepcopy(operation.get("arguments", {}))
        run = OPERATIONS[operation["name"]]
        expected_error = operation.get("expectError")
        subject = operation["object"]
        target = None if subject == "testRunner" else self.entities[subject]
        try:
            result = run(self, target, **arguments)
        except PyMongoError as error:
            if expected_error is None:
                raise
            check_error(expected_error, error)
            return
        assert expected_error is None, f"{operation['name']} did not fail: {result!r}"
        if "expectResult" in operation:
            check_match(operation["expectResult"], result)
        if "saveResultAsEntity" in operation:
            self.entities[operation["saveResultAsEntity"]] = result

    def create_change_stream(self, target: Any, **arguments: Any) -> Any:
        stream = self.watch(
            target, **{SNAKE.get(key, key): each for key, each in arguments.items()}
        )
        self.closing.callback(stream.close)
        return stream

    def fail_point(self, target: Any, client: str, failPoint: Document) -> None:  # noqa: N803
        admin = self.entities[client].admin
        admin.command(failPoint)
        off = {"configureFailPoint": failPoint["configureFailPoint"], "mode": "off"}
        self.closing.callback(admin.command, off)

    def create_entities(self, target: Any, entities: list[Document]) -> None:
        for entity in entities:
            self.create(entity)

    def check_events(self, expected: Document) -> None:
        """Compare what a client sent with what it should have."""
        seen = self.observers[expected["client"]].commands
        wanted = [event["commandStartedEvent"] for event in expected["events"]]
        if expected.get("ignoreExtraEvents"):
            seen = seen[: len(wanted)]
        names = [name for name, _, _ in seen]
        assert len(seen) == len(wanted), f"{names} instead of {len(wanted)} commands"
        for (name, database, command), one in zip(seen, wanted, strict=True):
            assert one.get("commandName", name) == name
            assert one.get("databaseName", database) == database
            check_match(one.get("command", {}), command)


SNAKE = {
    "batchSize": "batch_size",
    "fullDocument": "full_document",
    "fullDocumentBeforeChange": "full_document_before_change",
    "maxAwaitTimeMS": "max_await_time_ms",
    "showExpandedEvents": "show_expanded_events",
    "timeoutMS": "timeout_ms",
}

Operation = Callable[..., Any]


def _update(method: str, change: str) -> Operation:
    return lambda run, target, **said: getattr(target, method)(said["filter"], said[change])


OPERATIONS: Mapping[str, Operation] = {
    "createChangeStream": Run.create_change_stream,
    "createEntities": Run.create_entities,
    "failPoint": lambda run, target, **said: run.fail_point(target, **said),
    "iterateUntilDocumentOrError": lambda run, target: target.next(),
    "insertOne": lambda run, target, document: target.insert_one(document),
    "updateOne": _update("update_one", "update"),
    "replaceOne": _update("replace_one", "replacement"),
    "deleteOne": lambda run, target, **said: target.delete_one(said["filter"]),
    "createCollection": lambda run, target, collection, **options: target.create_collection(
        collection, **options
    ),
    "dropCollection": lambda run, target, collection: target.drop_collection(collection),
    "createIndex": lambda run, target, keys, name: target.create_index(
        list(keys.items()), name=name
    ),
    "dropIndex": lambda run, target, name: target.drop_index(name),
    "rename": lambda run, target, to, **options: target.rename(to, **options),
    "runCommand": lambda run, target, command, **_: target.command(command),
}


def check_error(expected: Document, error: PyMongoError) -> None:
    """Compare an error with what it should be."""
    if "errorCode" in expected or expected.get("isClientError") is False:
        assert isinstance(error, OperationFailure), repr(error)
    if isinstance(error, OperationFailure):
        details = error.details or {}
        assert expected.get("errorCode", error.code) == error.code
        assert expected.get("errorCodeName", details.get("codeName")) == details.get("codeName")
    for label in expected.get("errorLabelsContain", ()):
        assert error.has_error_label(label)
    if expected.get("isTimeoutError"):
        assert error.timeout


def run_case(case: Case, uri: str, client: MongoClient[Any]) -> None:
    """Run a case; ``client`` is for what comes before it."""
    for data in decode(case.shared.get("initialData", [])):
        fill(client, data)
    perform_case(case, Run(uri))


def perform_case(case: Case, run: Run) -> None:
    """Make a case's entities, do what it says, and compare."""
    test = decode(case.test)
    with run.closing:
        for entity in decode(case.shared.get("createEntities", [])):
            run.create(entity)
        for operation in test["operations"]:
            run.operate(operation)
        for expected in test.get("expectEvents", []):
            run.check_events(expected)


def fill(client: MongoClient[Any], data: Document) -> None:
    """The collection as a case finds it."""
    database = client.get_database(data["databaseName"], write_concern=MAJORITY)
    database.drop_collection(data["collectionName"])
    database.create_collection(data["collectionName"], **data.get("createOptions", {}))
    if data["documents"]:
        database[data["collectionName"]].insert_many(data["documents"])


def decode(value: Any) -> Any:
    """Extended JSON as Python has it."""
    if isinstance(value, dict):
        inner = {key: decode(each) for key, each in value.items()}
        marks = [key for key in inner if key.startswith("$") and not key.startswith("$$")]
        is_plain = not marks or marks[0] not in EXTENDED
        return inner if is_plain else object_hook(inner, CANONICAL_JSON_OPTIONS)
    return [decode(each) for each in value] if isinstance(value, list) else value


EXTENDED = frozenset(
    ("$oid", "$numberInt", "$numberLong", "$numberDouble", "$date", "$timestamp", "$binary")
)
