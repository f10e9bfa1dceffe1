"""BSON bytes read and joined in place; the floor that every other room stands on."""

from tailrace.raw.elements import (
    Span,
    all_spans,
    document,
    document_end,
    element,
    iter_spans,
    spans,
    string_value,
    text_of,
)

__all__ = [
    "Span",
    "all_spans",
    "document",
    "document_end",
    "element",
    "iter_spans",
    "spans",
    "string_value",
    "text_of",
]
