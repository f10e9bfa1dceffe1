"""Each operator of the match language agrees with the server, in verdict and error code."""

from __future__ import annotations

import random

import pytest
from tests.live.query.test_operators import shown
from tests.support.effort import effort
from tests.support.match_cases import Queries, query_document, stage
from tests.support.operator_values import Values
from tests.support.oracle import LeftToServer, Oracle, ours

from tailrace.embedded import ReplicaSet
from tailrace.event.shape import parse_version
from tailrace.query import Context

QUERIES, DOCUMENTS = effort(25), 8
OPERATORS = (*Queries(Values(random.Random())).operators, "$and", "$or", "$nor")


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_of_queries_agrees_with_the_server(mongodb: ReplicaSet, name: str) -> None:
    oracle = Oracle(mongodb.client())
    context = Context(parse_version(mongodb.version))
    queries = Queries(Values(random.Random(name)))
    found = []
    for _ in range(QUERIES):
        query = queries.logic(name) if name in ("$and", "$or", "$nor") else queries.of(name)
        documents = [query_document(queries.values) for _ in range(DOCUMENTS)]
        stages = [stage(query)]
        try:
            answers = ours(stages, documents, context)
        except LeftToServer as left:
            pytest.fail(f"{shown(query[1])} is not read here: {left}")
        found += [
            f"{shown(query[1])} of {shown(each)}: ours {shown(mine)}, theirs {shown(theirs)}"
            for each, mine, theirs in oracle.differences(stages, documents, answers)
        ]
    assert not found, f"{len(found)} differ:\n" + "\n".join(found[:6])
