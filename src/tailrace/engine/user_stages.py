"""A stream's user stages made ready: variables, collation, and who helps out.

One place for every front door, so that ``pipeline`` means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailrace.engine.handover import KNOWS_DOCUMENTS, ServerEvaluator
from tailrace.event.shape import parse_version
from tailrace.oplog.deployment import Deployment
from tailrace.query import Context, Pipeline, compile_pipeline, variables_of
from tailrace.query.context import Version
from tailrace.query.values import Value

SIMPLE = "simple"


@dataclass(frozen=True, slots=True)
class UserStages:
    """What the user asked for behind ``$changeStream``."""

    pipeline: Sequence[Mapping[str, Any]] | None = None
    let: Mapping[str, Any] | None = None
    collation: Mapping[str, Any] | None = None

    def compiled(
        self,
        version: Version,
        deployment: Deployment | None = None,
        known: Mapping[bytes, Value] | None = None,
    ) -> Pipeline | None:
        """The pipeline for a release; ``known`` are the server's own variables."""
        context = Context(version, dict(known or {}), collated=self.collated)
        context = replace(context, variables=variables_of(self.let, context))
        if not self.pipeline:
            return None
        elsewhere = None
        if deployment is not None and version >= KNOWS_DOCUMENTS:
            elsewhere = ServerEvaluator(deployment, self.let, self.collation)
        return compile_pipeline(self.pipeline, context, elsewhere)

    @property
    def collated(self) -> bool:
        """Whether strings compare by another collation than the simple one."""
        return bool(self.collation) and (self.collation or {}).get("locale") != SIMPLE


class _Nobody:
    """Stands for a server when only the choice is asked for."""

    def evaluate(self, stages: Sequence[bytes], documents: Sequence[bytes]) -> list[bytes]:
        """Answers nothing."""
        return []


def explain_pipeline(
    pipeline: Sequence[Mapping[str, Any]],
    *,
    server_version: str = "6.0",
    let: Mapping[str, Any] | None = None,
    collation: Mapping[str, Any] | None = None,
) -> list[dict[str, str]]:
    """Each stage of a pipeline, whether it runs here or on the source server, and why there.

    Raises what opening a stream with it would: the server's refusals.
    """
    stages = UserStages(pipeline, let, collation)
    context = Context(parse_version(server_version), {}, collated=stages.collated)
    context = replace(context, variables=variables_of(let, context))
    return compile_pipeline(pipeline, context, _Nobody()).explain()
