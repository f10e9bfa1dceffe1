"""What ``watch`` was given, parsed once: a target, PyMongo's options, and our own.

Values are not judged here: the specification leaves them to the server, also the ones
that contradict each other. Only what never reaches a server is checked, and what is
no value of its kind at all (a pipeline that is no list).
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection, Mapping
from typing import Any

from pymongo import AsyncMongoClient, MongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.collation import Collation
from pymongo.collection import Collection as SyncCollection
from pymongo.database import Database

from tailrace.driver.commands import Wanted
from tailrace.driver.profiles import PROFILES, Profile
from tailrace.errors import OptionError

CLIENTS = (MongoClient, AsyncMongoClient)
DATABASES = (Database, AsyncDatabase)
COLLECTIONS = (SyncCollection, AsyncCollection)
WHOLE_CLUSTER_DATABASE = "admin"
STAGE_OPTIONS = ("full_document", "full_document_before_change", "show_expanded_events")
STARTS = ("resume_after", "start_after", "start_at_operation_time")
ENGINES = ("server", "oplog")
ON_ERROR = ("raise", "keep-trying")


def client_of(target: Any) -> Any:
    """The client that a target belongs to."""
    if isinstance(target, CLIENTS):
        return target
    if isinstance(target, DATABASES):
        return target.client
    if isinstance(target, COLLECTIONS):
        return target.database.client
    kind = type(target).__name__
    raise TypeError(f"a stream watches a PyMongo client, database or collection, not {kind}")


def wanted(target: Any, given: Mapping[str, Any]) -> Wanted:
    """What a stream is asked for, by ``watch``'s arguments."""
    session = given["session"]
    stage = {name: given[name] for name in STAGE_OPTIONS} | given["stage_options"]
    _check_word(given["full_document"])
    stage = {server_name(name): value for name, value in stage.items() if value is not None}
    starts = {name: _start(name, stage, given) for name in STARTS}
    return Wanted(
        **_namespace(target),
        pipeline=_pipeline(given["pipeline"]),
        stage_options=stage,
        **starts,
        batch_size=given["batch_size"],
        max_await_time_ms=given["max_await_time_ms"],
        collation=_collation(given["collation"]),
        comment=given["comment"],
        read_concern=target.read_concern.document,
        last_operation_time=None if session is None else session.operation_time,
    )


def profile(name: str) -> Profile:
    """The profile that ``resume_policy`` names."""
    return PROFILES[one_of("resume_policy", name, PROFILES)]


def check_waits(max_await_time_ms: int | None, timeout_ms: int | None) -> None:
    """A batch must not be waited for longer than a whole call may take."""
    if max_await_time_ms is not None and timeout_ms and max_await_time_ms >= timeout_ms:
        raise OptionError(
            f"max_await_time_ms ({max_await_time_ms}) must be below timeout_ms ({timeout_ms})",
            option="max_await_time_ms",
        )


def one_of(option: str, value: str, known: Collection[str]) -> str:
    """A value out of a few; the error names the nearest."""
    if value in known:
        return value
    near = difflib.get_close_matches(str(value), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise OptionError(f"{option} is {' or '.join(known)}, not {value!r}{hint}", option=option)


def server_name(name: str) -> str:
    """An option's name in the stage: ``show_expanded_events`` is ``showExpandedEvents``."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _namespace(target: Any) -> dict[str, Any]:
    if isinstance(target, CLIENTS):
        return {"database": WHOLE_CLUSTER_DATABASE, "whole_cluster": True}
    if isinstance(target, DATABASES):
        return {"database": target.name}
    return {"database": target.database.name, "collection": target.name}


def _pipeline(pipeline: Any) -> list[Any]:
    if pipeline is None:
        return []
    if not isinstance(pipeline, list | tuple):
        raise TypeError(f"pipeline must be a list, not {type(pipeline).__name__}")
    return copy.deepcopy(list(pipeline))


def _check_word(full_document: Any) -> None:
    if full_document is not None and not isinstance(full_document, str):
        raise TypeError(f"full_document must be a string, not {type(full_document).__name__}")


def _start(name: str, stage: dict[str, Any], given: Mapping[str, Any]) -> Any:
    """A start option, under PyMongo's name or, taken out of the stage's, the server's."""
    named = stage.pop(server_name(name), None)
    return copy.deepcopy(named if given[name] is None else given[name])


def _collation(collation: Any) -> Any:
    return collation.document if isinstance(collation, Collation) else collation
