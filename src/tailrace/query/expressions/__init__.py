"""The expression language: one table from operator to how it is read.

``parse`` gives a ``Node``; what has only constants in it has been evaluated by then.
"""

from tailrace.query.expressions.accumulators import ACCUMULATORS
from tailrace.query.expressions.arithmetic import ARITHMETIC
from tailrace.query.expressions.arrays import ARRAYS
from tailrace.query.expressions.conversions import CONVERSION_OPERATORS
from tailrace.query.expressions.dates import DATES
from tailrace.query.expressions.logic import LOGIC
from tailrace.query.expressions.node import Frame, Node
from tailrace.query.expressions.objects import OBJECTS
from tailrace.query.expressions.parser import OPERATORS, Scope, parse
from tailrace.query.expressions.regexes import REGEXES
from tailrace.query.expressions.sets import SETS
from tailrace.query.expressions.strings import STRINGS
from tailrace.query.expressions.trigonometry import TRIGONOMETRY

for _group in (
    ACCUMULATORS,
    ARITHMETIC,
    ARRAYS,
    CONVERSION_OPERATORS,
    DATES,
    LOGIC,
    OBJECTS,
    REGEXES,
    SETS,
    STRINGS,
    TRIGONOMETRY,
):
    OPERATORS.update(_group)

__all__ = ["OPERATORS", "Frame", "Node", "Scope", "parse"]
