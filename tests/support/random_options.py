"""Random ``$changeStream`` options, right and wrong, and the namespaces they are tried on."""

from __future__ import annotations

import random
from typing import Any

from bson import Binary, Timestamp

from tailrace.stage.options import OPTIONS

NAMES = [name.decode() for name in OPTIONS]
STRANGERS = ["bogus", "FullDocument", "$_generateV2ResumeTokens"]
WRONG: list[Any] = [None, 1, "x", True, {}, [], 1.5, Timestamp(1, 1), b"x"]
IMAGES = {
    "fullDocument": ["default", "updateLookup", "whenAvailable", "required", "off", "Default", ""],
    "fullDocumentBeforeChange": ["off", "whenAvailable", "required", "default", ""],
}
SCOPES = [
    None,
    "{db}",
    "{db}.things",
    "{db}.things",
    "{db}.view",
    "{db}.series",
    "{db}.not_there",
    "{db}.system.views",
    "{db}.system.js",
    "{db}.system.things",
    "admin",
    "admin.things",
    "config",
    "config.things",
    "local",
    "local.oplog.rs",
]


class RandomOptions:
    """Makes options; ``tokens`` are those of real events, and of high-water marks."""

    def __init__(self, rng: random.Random, tokens: list[dict[str, Any]], now: Timestamp) -> None:
        self.rng = rng
        self.tokens = tokens
        self.now = now

    def scope(self, database: str) -> str | None:
        """A namespace, some of which no stream may watch."""
        scope = self.rng.choice(SCOPES)
        return scope.format(db=database) if scope else None

    def options(self) -> dict[str, Any]:
        """Up to four options."""
        count = self.rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
        names = self.rng.sample([*NAMES, *NAMES, *STRANGERS], count)
        return {name: self._value(name) for name in names}

    def _value(self, name: str) -> Any:
        rng = self.rng
        if rng.random() < 0.12:
            return rng.choice(WRONG)
        if name in ("resumeAfter", "startAfter"):
            return self._token()
        if name == "startAtOperationTime":
            return rng.choice([Timestamp(4_000_000_000, 1), Timestamp(1, 1), self.now])
        if name in IMAGES:
            return rng.choice(IMAGES[name])
        return rng.random() < 0.7

    def _token(self) -> dict[str, Any]:
        rng = self.rng
        token = dict(rng.choice(self.tokens))
        data = token["_data"]
        changed: dict[str, Any] = rng.choice(
            [
                *([{}] * 6),
                {"_data": data[: rng.randrange(len(data))]},
                {"_data": data.lower()},
                {"_data": Binary(b"\x82", 0)},
                {"_data": data[:20] + "FF" + data[22:]},
                {"_typeBits": rng.choice([Binary(b"\x81\x80", 0), Binary(b"", 0), 1])},
                {"more": 1},
            ]
        )
        return {**token, **changed}
