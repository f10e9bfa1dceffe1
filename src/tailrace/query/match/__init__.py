"""The match language: predicates over raw documents."""

from tailrace.query.match.parser import FIELD, TOP, Predicate, parse_match

__all__ = ["FIELD", "TOP", "Predicate", "parse_match"]
