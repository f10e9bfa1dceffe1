"""The expression language: one table from operator to how it is read.

``parse`` gives a ``Node``; what has only constants in it has been evaluated by then.
"""

from tailrace.query.expressions.logic import LOGIC
from tailrace.query.expressions.node import Frame, Node
from tailrace.query.expressions.parser import OPERATORS, Scope, parse
from tailrace.query.expressions.strings import STRINGS

OPERATORS.update({**LOGIC, **STRINGS})

__all__ = ["OPERATORS", "Frame", "Node", "Scope", "parse"]
