"""The server as the oracle of expressions: what ``aggregate`` makes of each document.

All documents of which we expect a value go in one round trip; where the server has an
error instead, the batch is halved until the document is found. Documents of which we
expect an error go one by one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from tailrace.errors import NotEvaluable, ServerError
from tailrace.query import Context, compile_pipeline
from tailrace.raw.elements import DOUBLE

RAW = CodecOptions(document_class=RawBSONDocument)
Client = MongoClient[dict[str, Any]]
Answer = bytes | int | None
"""A document, an error's code, or None for a document that was dropped."""
Stages = Sequence[Mapping[str, Any]]


class LeftToServer(Exception):
    """Our side says that only a server can evaluate this."""


def ours(stages: Stages, documents: Sequence[bytes], context: Context) -> list[Answer | None]:
    """What we make of each document; ``LeftToServer`` when we do not read the stages at all."""
    try:
        pipeline = compile_pipeline(stages, context)
    except ServerError as error:
        return [error.code] * len(documents)
    except NotEvaluable as error:
        raise LeftToServer(str(error)) from error
    answers: list[Answer] = []
    for each in documents:
        try:
            answers.append(pipeline.run(each))
        except ServerError as error:
            answers.append(error.code)
        except NotEvaluable:
            answers.append(LEFT)
    return answers


LEFT = -1
"""Stands for a document that only a server can evaluate."""


def same(made: object, kept: object) -> bool:
    """Equal but for the bits of a double that is no number, which are up to the processor."""
    if not (isinstance(made, list) and isinstance(kept, list)):
        return False
    return [_one_nan(each) for each in made] == [_one_nan(each) for each in kept]


def _one_nan(raw: bytes) -> bytes:
    """A document ``{v: value}`` with the one NaN for all of them."""
    is_double = len(raw) == SIZE_WITH_DOUBLE and raw[4] == DOUBLE
    if is_double and math.isnan(struct.unpack("<d", raw[-9:-1])[0]):
        return raw[:-9] + NAN + raw[-1:]
    return raw.replace(NEGATIVE_NAN, NAN)


NAN, NEGATIVE_NAN = struct.pack("<d", math.nan), struct.pack("<d", -math.nan)
SIZE_WITH_DOUBLE = len(bson.encode({"v": 1.0}))


class Oracle:
    """One server, asked through ``$documents`` (5.1+)."""

    def __init__(self, client: Client) -> None:
        self._database = client["oracle"]

    def one(self, stages: Stages, document: bytes) -> Answer:
        """What the server makes of one document."""
        made = self._ask(stages, [document])
        if isinstance(made, int):
            return made
        return made[0] if made else None

    def differences(
        self, stages: Stages, documents: Sequence[bytes], answers: Sequence[Answer]
    ) -> list[tuple[bytes, Answer, Answer]]:
        """Each document of which the server thinks otherwise, our answer and its own."""
        found = []
        fine = [(d, a) for d, a in zip(documents, answers, strict=True) if not isinstance(a, int)]
        found += self._compare(stages, fine)
        for each, answer in zip(documents, answers, strict=True):
            if isinstance(answer, int) and answer != LEFT:
                theirs = self.one(stages, each)
                if theirs != answer:
                    found.append((each, answer, theirs))
        return found

    def _compare(
        self, stages: Stages, pairs: list[tuple[bytes, Answer]]
    ) -> list[tuple[bytes, Answer, Answer]]:
        if not pairs:
            return []
        made = self._ask(stages, [each for each, _ in pairs])
        kept = [answer for _, answer in pairs if answer is not None]
        if made == kept or same(made, kept):
            return []
        if len(pairs) == 1:
            each, answer = pairs[0]
            theirs = made if isinstance(made, int) else (made[0] if made else None)
            return [(each, answer, theirs)]
        half = len(pairs) // 2
        return self._compare(stages, pairs[:half]) + self._compare(stages, pairs[half:])

    def _ask(self, stages: Stages, documents: list[bytes]) -> list[bytes] | int:
        raw = [RawBSONDocument(each) for each in documents]
        command = {
            "aggregate": 1,
            "pipeline": [{"$documents": {"$literal": raw}}, *stages],
            "cursor": {"batchSize": len(documents) + 1},
        }
        try:
            answer = self._database.command(command, codec_options=RAW)
        except OperationFailure as error:
            return error.code or 0
        batch = bson.decode(bytes(answer.raw), RAW)["cursor"]["firstBatch"]
        return [bytes(each.raw) for each in batch]
