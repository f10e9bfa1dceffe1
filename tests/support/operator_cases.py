"""For each operator: expressions over ``$a`` to ``$d``, and the pools that fill them.

The server evaluates the same expressions over the same documents.
"""

from __future__ import annotations

from typing import Any

Case = tuple[Any, tuple[str, ...]]


def plain(name: str, *pools: tuple[str, ...]) -> list[Case]:
    """An operator applied to as many paths as a row has pools."""
    return [
        ({name: [f"${letter}" for letter, _ in zip("abcd", row, strict=False)]}, row)
        for row in pools
    ]


def named(name: str, parts: dict[str, Any], *pools: tuple[str, ...]) -> list[Case]:
    """An operator with an object of parts."""
    return [({name: parts}, row) for row in pools]


NUMBERS_2 = (("number", "number"), ("number", "small"), ("any", "any"))
ONE_NUMBER = (("number",), ("number",), ("any",))

CASES: dict[str, list[Case]] = {
    **{name: plain(name, *NUMBERS_2) for name in ("$divide", "$mod", "$log", "$atan2")},
    "$pow": plain("$pow", ("small", "small"), *NUMBERS_2),
    "$add": plain("$add", ("number",) * 3, ("number", "date"), ("number", "null", "any"), ("any",) * 2),
    "$multiply": plain("$multiply", ("number",) * 3, ("small",) * 4, ("number", "null", "any")),
    "$subtract": plain("$subtract", ("date", "date"), ("date", "number"), *NUMBERS_2),
    **{
        name: plain(name, *ONE_NUMBER)
        for name in (
            "$abs", "$ceil", "$floor", "$sqrt", "$exp", "$ln", "$log10", "$sin", "$cos", "$tan",
            "$asin", "$acos", "$atan", "$sinh", "$cosh", "$tanh", "$asinh", "$acosh", "$atanh",
            "$degreesToRadians", "$radiansToDegrees",
        )
    },
    **{name: plain(name, ("number",), ("number", "small"), ("number", "any")) for name in ("$round", "$trunc")},
    **{
        name: plain(name, ("any", "any"), ("number", "number"), ("array", "array"), ("string", "string"))
        for name in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp")
    },
    **{name: plain(name, ("any",) * 3, ("bool", "bool")) for name in ("$and", "$or")},
    "$not": plain("$not", ("any",)),
    "$cond": plain("$cond", ("any",) * 3) + named("$cond", {"if": "$a", "then": "$b", "else": "$c"}, ("any",) * 3),
    "$ifNull": plain("$ifNull", ("null", "any"), ("any", "any", "any")),
    "$switch": named("$switch", {"branches": [{"case": "$a", "then": "$b"}, {"case": "$c", "then": 2}]}, ("bool", "any", "any"))
    + named("$switch", {"branches": [{"case": "$a", "then": "$b"}], "default": "$c"}, ("bool", "any", "any")),
    "$concat": plain("$concat", ("string",) * 3, ("string", "null")),
    **{
        name: plain(name, ("string", "small", "small"), ("any", "small", "number"))
        for name in ("$substr", "$substrBytes", "$substrCP")
    },
    **{name: plain(name, ("string",), ("any",), ("number",)) for name in ("$toLower", "$toUpper")},
    "$strcasecmp": plain("$strcasecmp", ("string", "string"), ("any", "any")),
    "$strLenBytes": plain("$strLenBytes", ("string",)),
    "$strLenCP": plain("$strLenCP", ("string",)),
    **{
        name: plain(name, ("string", "string"), ("string", "string", "small"), ("string", "string", "small", "small"))
        for name in ("$indexOfBytes", "$indexOfCP")
    },
    "$split": plain("$split", ("string", "string")),
    **{
        name: named(name, {"input": "$a"}, ("string",)) + named(name, {"input": "$a", "chars": "$b"}, ("string", "string"))
        for name in ("$trim", "$ltrim", "$rtrim")
    },
    **{
        name: named(name, {"input": "$a", "find": "$b", "replacement": "$c"}, ("string", "string", "string"))
        for name in ("$replaceOne", "$replaceAll")
    },
    **{
        name: named(name, {"input": "$a", "regex": "$b"}, ("string", "regex"), ("string", "string"))
        + named(name, {"input": "$a", "regex": "$b", "options": "$c"}, ("string", "string", "null"))
        + named(name, {"input": "$a", "regex": "a(b)?|(ö)", "options": "i"}, ("string",))
        for name in ("$regexMatch", "$regexFind", "$regexFindAll")
    },
    "$arrayElemAt": plain("$arrayElemAt", ("array", "small"), ("array", "number")),
    **{name: plain(name, ("array",)) for name in ("$first", "$last", "$reverseArray", "$size", "$isArray")},
    "$concatArrays": plain("$concatArrays", ("array", "array"), ("array", "null", "any")),
    "$in": plain("$in", ("small", "array"), ("any", "array")),
    "$indexOfArray": plain("$indexOfArray", ("array", "small"), ("array", "small", "small", "small")),
    "$range": plain("$range", ("small", "small"), ("small", "small", "small")),
    "$slice": plain("$slice", ("array", "small"), ("array", "small", "small")),
    "$zip": named("$zip", {"inputs": ["$a", "$b"]}, ("array", "array"))
    + named("$zip", {"inputs": ["$a", "$b"], "useLongestLength": True, "defaults": ["$c", 1]}, ("array", "array", "any")),
    "$map": named("$map", {"input": "$a", "as": "x", "in": {"$concatArrays": [["$$x"], ["$b"]]}}, ("array", "any")),
    "$filter": named("$filter", {"input": "$a", "cond": {"$gt": ["$$this", "$b"]}}, ("array", "small"))
    + named("$filter", {"input": "$a", "as": "x", "cond": "$$x", "limit": "$b"}, ("array", "small")),
    "$reduce": named("$reduce", {"input": "$a", "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}, ("array",))
    + named("$reduce", {"input": "$a", "initialValue": "$b", "in": {"$add": ["$$value", "$$this"]}}, ("numbers", "number")),
    "$arrayToObject": plain("$arrayToObject", ("pairs",), ("pairs",), ("array",)),
    "$objectToArray": plain("$objectToArray", ("object",)),
    "$setDifference": plain("$setDifference", ("array", "array")),
    **{
        name: plain(name, ("array", "array"), ("array", "array", "array"))
        for name in ("$setEquals", "$setUnion", "$setIntersection")
    },
    "$setIsSubset": plain("$setIsSubset", ("array", "array")),
    "$allElementsTrue": plain("$allElementsTrue", ("array",)),
    "$anyElementTrue": plain("$anyElementTrue", ("array",)),
    "$mergeObjects": plain("$mergeObjects", ("object", "object"), ("object", "null", "object")),
    "$let": named("$let", {"vars": {"x": "$a", "y": {"$add": ["$b", 1]}}, "in": ["$$x", "$$y", "$$ROOT.a", "$$CURRENT.b"]}, ("any", "number")),
    "$getField": named("$getField", {"field": "a", "input": "$a"}, ("object",)) + [({"$getField": "b"}, ("any", "any"))]
    + named("$getField", {"field": {"$literal": "x.y"}, "input": "$a"}, ("object",)),
    "$setField": named("$setField", {"field": "a", "input": "$a", "value": "$b"}, ("object", "any")),
    "$unsetField": named("$unsetField", {"field": {"$literal": "$d"}, "input": "$a"}, ("object",)),
    "$literal": named("$literal", {"$add": [1, 2]}, ("any",)),
    "$bsonSize": plain("$bsonSize", ("object",), ("any",)),
    "$binarySize": plain("$binarySize", ("binary",), ("string",)),
    "$tsSecond": plain("$tsSecond", ("timestamp",)),
    "$tsIncrement": plain("$tsIncrement", ("timestamp",)),
    "$type": plain("$type", ("any",)),
    "$isNumber": plain("$isNumber", ("any",), ("number",)),
    **{
        name: plain(name, ("any",), ("number",), ("string",))
        for name in ("$toBool", "$toDecimal", "$toDouble", "$toInt", "$toLong", "$toObjectId", "$toString", "$toDate")
    },
    "$convert": [
        case
        for to in ("int", "long", "double", "decimal", "bool", "date", "string", "objectId", "array")
        for case in named("$convert", {"input": "$a", "to": to, "onError": "bad", "onNull": "none"}, ("any",))
    ]
    + named("$convert", {"input": "$a", "to": "$b"}, ("number", "small")),
    **{
        name: plain(name, ("numbers",), ("number", "number", "number"), ("any",))
        for name in ("$sum", "$avg", "$stdDevPop", "$stdDevSamp")
    },
    **{name: plain(name, ("array",), ("any", "any", "number")) for name in ("$max", "$min")},
    **{
        name: named(name, {"input": "$a", "n": "$b"}, ("array", "small"))
        for name in ("$firstN", "$lastN", "$maxN", "$minN")
    },
    "$sortArray": named("$sortArray", {"input": "$a", "sortBy": 1}, ("array",)) + named("$sortArray", {"input": "$a", "sortBy": -1}, ("array",)),
    **{
        name: plain(name, ("date",), ("moment",))
        + named(name, {"date": "$a", "timezone": "$b"}, ("moment", "zone"), ("date", "zone"))
        for name in (
            "$year", "$month", "$dayOfMonth", "$hour", "$minute", "$second", "$millisecond",
            "$dayOfYear", "$dayOfWeek", "$week", "$isoDayOfWeek", "$isoWeek", "$isoWeekYear",
        )
    },
    "$dateToParts": named("$dateToParts", {"date": "$a", "timezone": "$b"}, ("moment", "zone"))
    + named("$dateToParts", {"date": "$a", "iso8601": "$b"}, ("date", "bool")),
    "$dateToString": named("$dateToString", {"date": "$a"}, ("moment",))
    + named("$dateToString", {"date": "$a", "timezone": "$b", "onNull": "$c"}, ("date", "zone", "any"))
    + named("$dateToString", {"date": "$a", "format": "%Y %G %m %d %H %M %S %L %j %w %u %U %V %z %Z %%", "timezone": "$b"}, ("date", "zone"))
    + named("$dateToString", {"date": "$a", "format": "$b"}, ("date", "string")),
    "$dateFromParts": named("$dateFromParts", {"year": "$a", "month": "$b", "day": "$c", "timezone": "$d"}, ("year", "small", "number", "zone"))
    + named("$dateFromParts", {"year": 2024, "hour": "$a", "minute": "$b", "second": "$c", "millisecond": "$d"}, ("small",) * 4)
    + named("$dateFromParts", {"isoWeekYear": "$a", "isoWeek": "$b", "isoDayOfWeek": "$c"}, ("year", "small", "small")),
    "paths": [("$a.a", ("object",)), ("$a.a", ("objects",)), ("$a.b.c", ("array",)), (["$a", "$b"], ("any", "null")), ({"x": "$a", "y": {"z": "$b"}}, ("any", "any"))],
}  # fmt: skip
