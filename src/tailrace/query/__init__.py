"""The query room: the languages of the stages that a user appends to a change stream."""

from tailrace.query.context import Context
from tailrace.query.pipeline import Pipeline, compile_pipeline, variables_of

__all__ = ["Context", "Pipeline", "compile_pipeline", "variables_of"]
