"""What a server's version and a stream's options make of every event.

A ``Shape`` is decided once per stream; builders ask it and nothing else. Versions
from 4.2 to 8.x differ in tokens (version 2 since 6.1), ``wallTime`` (since 6.0) and
in which fields each option shows.

Rules: facts/server-semantics, sections 2.2 and 3.6. Knows no entry and no scope.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.errors import OptionError, UnsupportedSource

Version = tuple[int, int, int]

OLDEST_VERSION: Version = (4, 2, 0)
NEWEST_MAJOR = 8
LAST_RELEASE = 999
"""The patch number that stands for "the last release" where none is named."""
_RELEASE = re.compile(r"\s*(\d+)\.(\d+)(?:\.(\d+))?(?:-\S*)?\s*", re.ASCII).fullmatch
"""What follows a dash (a release candidate, a build) says nothing of events."""


def parse_version(text: object) -> Version:
    """``"6.0"`` (its last release) or ``"6.0.5"`` as a comparable triple."""
    found = _RELEASE(text) if isinstance(text, str) else None
    if found is None:
        raise UnsupportedSource(
            f"server version {text!r} is not a string of the form 6.0 or 6.0.5", version=text
        )
    major, minor, patch = found.groups()
    version = (int(major), int(minor), LAST_RELEASE if patch is None else int(patch))
    if version < OLDEST_VERSION or version[0] > NEWEST_MAJOR:
        raise UnsupportedSource(
            f"server version {text} is not supported: 4.2 to {NEWEST_MAJOR}.x are", version=text
        )
    return version


@dataclass(frozen=True, slots=True)
class Shape:
    """The version's and the options' answer to every question a builder has."""

    version: Version
    expanded: bool = False
    system: bool = False
    migrations: bool = False
    raw_updates: bool = False
    commit_timestamps: bool = False
    emit_from_migrate: bool = False
    end_of_transaction: bool = False
    for_merge: bool = False
    guides: bool = False
    """Whether it is read for what happens to the cluster: all that is shown, and more."""
    matches_uuid: bool = False
    """Whether look-ups were asked to stay with the collection that the event is of."""
    splits: bool = False
    """Whether the stream's last stage splits large events."""
    views: bool = True
    """Whether writes to a catalog of views are events of views: not where it is watched itself."""
    shard_keys: Mapping[bytes, tuple[bytes, ...]] = field(default_factory=dict, compare=False)
    """By a collection's UUID the paths of its shard key, where inserts do not say them."""

    @property
    def token_version(self) -> int:
        """The version of the tokens that this release writes.

        A 6.0 that splits events (6.0.24 was asked) writes all tokens of that stream as later
        releases do, since only those can have a fragment's number.
        """
        return 2 if self.version >= (6, 1, 0) or self.splits else 1

    @property
    def wall_time(self) -> bool:
        """Whether events carry ``wallTime``."""
        return self.version >= (6, 0, 0)

    @property
    def diffs_only(self) -> bool:
        """Whether an update that is neither a replacement nor a diff is an error."""
        return self.version >= (6, 1, 0)

    @property
    def disambiguates(self) -> bool:
        """Whether ``showExpandedEvents`` adds ``disambiguatedPaths`` to updates."""
        return self.version >= (6, 1, 0)

    @property
    def unwinds_all(self) -> bool:
        """Whether operations that share an entry are events also where no transaction is named.

        Up to 6.0 an ``applyOps`` without ``lsid`` or ``txnNumber`` (somebody ran the command)
        shows nothing. That is how a shard is removed then.
        """
        return self.guides or self.version >= (6, 1, 0)

    @property
    def shows_resharding(self) -> bool:
        """Whether ``showSystemEvents`` shows a resharding's temporary collection."""
        return self.version >= (6, 1, 0)

    @property
    def checks_early(self) -> bool:
        """Whether what precedes a token is swallowed before images are looked for.

        7.0.28 does so. 6.0.5 misses the images of what it then swallows: the operations of
        the token's transaction that precede it.
        """
        return self.version >= (6, 0, 9)

    @property
    def shows_view_catalog(self) -> bool:
        """Whether ``showSystemEvents`` shows ``system.views``: 6.0.27 does, 6.0.24 does not."""
        return self.version >= (6, 0, 25)

    @property
    def images_in_log(self) -> bool:
        """Whether an entry names the no-op entry that holds its pre-image."""
        return self.version < (6, 0, 0)

    @property
    def looks_up_by_uuid(self) -> bool:
        """Whether an updated document is looked up in the collection of that UUID only.

        6.0.5 and older do so. 6.0.24 and 7.0.28 go by the name, and have an option.
        """
        return self.follows_renames or self.matches_uuid

    @property
    def follows_renames(self) -> bool:
        """Whether an updated document is looked up under the collection's newest name."""
        return self.version < (6, 0, 6)

    @property
    def ns_types(self) -> bool:
        """Whether ``create`` events say what kind of namespace was made."""
        return self.version >= (8, 0, 5)


PARAMETERS = {
    "featureFlagEndOfTransactionChangeEvent": "end_of_transaction",
    "changeStreamsEmitFromMigrate": "emit_from_migrate",
}
"""The server parameters that change events, and the trait that each one sets."""


def parameter_traits(parameters: Mapping[str, object]) -> dict[str, bool]:
    """The traits of a shape that a server's parameters decide; others are ignored."""
    if not isinstance(parameters, Mapping):
        kind = type(parameters).__name__
        raise OptionError(
            f"server_parameters must map names to values, not {kind}", option="server_parameters"
        )
    return {trait: parameters.get(name) is True for name, trait in PARAMETERS.items()}
