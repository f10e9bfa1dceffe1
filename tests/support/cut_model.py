"""The model of cut, offset and replay: a made-up log, a query over it, and its tables.

A log is written by a program of bytes (hypothesis draws and shrinks it): plain writes,
transactions of several entries, prepared ones that commit late, in any order, or abort.
A second program runs a query: batches with any limits while the log grows, rewinds of
the checkpoint by any number of batches, batches that are run again. The rules under test
are the source's own (``cuts.next_end``), or naive ones that must be caught.

What must hold: at each cut the table is what a snapshot read at that time sees, each
write once; a batch that is run again gives the same rows; in the end nothing is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tailrace.spark.source.cuts import Bounds, Limit, begin, end_at, next_end
from tailrace.spark.source.offsets import Offset, batch

NAME = "rs0"
OPEN_TRANSACTIONS = 3

NextEnd = Callable[["MadeUpLog", Offset, Limit], Offset]


@dataclass(frozen=True)
class MadeUpEntry:
    """One entry: what it is, which transaction it is of, and what it decides."""

    time: int
    kind: str
    transaction: int = 0
    decides: int = 0
    """The time of the prepare that a commit or an abort ends."""
    effective: int = 0


@dataclass(frozen=True)
class MadeUpRow:
    """One write as the source shows it."""

    transaction: int
    ordinal: int
    time: int
    effective: int

    @property
    def token(self) -> bytes:
        return b"82%016X2B022C%04X" % (self.time, self.ordinal)


@dataclass
class MadeUpLog:
    """A log as the rules see it: up to ``visible`` entries are majority committed."""

    program: bytes
    name: str = NAME
    visible: int = 1
    entries: list[MadeUpEntry] = field(default_factory=list)
    rows: list[MadeUpRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        _Writer(self).run(self.program)

    def reached(self) -> int:
        return self.entries[self.visible - 1].time

    def _seen(self) -> Sequence[MadeUpEntry]:
        return self.entries[: self.visible]

    def entry_at(self, time: int) -> bool:
        return any(entry.time == time for entry in self._seen())

    def before(self, time: int) -> int:
        earlier = [entry.time for entry in self._seen() if entry.time < time]
        return earlier[-1 - (time % 3) % len(earlier)] if earlier else self.entries[0].time

    def first_from(self, time: int) -> int | None:
        return next((entry.time for entry in self._seen() if entry.time >= time), None)

    def advance(self, start: int, limit: Limit) -> int | None:
        behind = [entry.time for entry in self._seen() if entry.time > start]
        count = limit.events or 1
        return behind[count - 1] if len(behind) >= count else None

    def undecided(self, start: int, end: int) -> Sequence[int]:
        stretch = [entry for entry in self._seen() if start < entry.time <= end]
        decided = {entry.decides for entry in stretch}
        return [e.time for e in stretch if e.kind == "prepare" and e.time not in decided]

    def open_at(self, time: int) -> Sequence[int]:
        decided = {entry.decides for entry in self.entries if entry.time <= time}
        return [
            entry.time
            for entry in self._seen()
            if entry.kind == "prepare" and entry.time <= time and entry.time not in decided
        ]

    def scan(self, start: Offset, end: Offset) -> list[MadeUpRow]:
        """The rows of a batch, as executors read them."""
        bounds = Bounds(start.cut, end.cut, start.after)
        behind, until = start.shards[NAME].start, end.shards[NAME].until
        assert until <= self.reached(), "a scan beyond what is final"
        return [
            row
            for row in self.rows
            if behind < row.time <= until and bounds.keeps(row.effective, row.token)
        ]


class _Writer:
    """Writes the log that a program of bytes describes."""

    def __init__(self, log: MadeUpLog) -> None:
        self._log = log
        self._time = 1 << 32
        self._open: dict[int, tuple[int, int]] = {}
        """Slot to the transaction's number and its prepare's time, 0 before it."""
        self._number = 0
        self._append("noop")

    def run(self, program: bytes) -> None:
        for byte in program:
            self._time += 1 + (byte >> 6) if byte & 0x20 == 0 else (1 << 32) - 1
            self._step(byte & 7, (byte >> 3) % OPEN_TRANSACTIONS, byte >> 5)
        for slot in list(self._open):
            self._time += 1
            self._decide(slot, commit=slot != 1, late=3)

    def _step(self, kind: int, slot: int, late: int) -> None:
        number, prepared = self._open.get(slot, (0, 0))
        if kind < 2:
            self._number += 1
            self._append("write", self._number)
            self._show(self._number, 1, self._time)
        elif kind == 2:
            self._append("noop")
        elif not number:
            self._number += 1
            self._open[slot] = (self._number, 0)
            self._append("part", self._number)
        elif not prepared and kind < 6:
            self._open[slot] = (number, self._time)
            self._append("prepare", number)
        elif not prepared:
            self._append("write", number)
            self._show(number, 2, self._time)
            del self._open[slot]
        else:
            self._decide(slot, commit=kind != 7, late=late)

    def _decide(self, slot: int, *, commit: bool, late: int) -> None:
        number, prepared = self._open.pop(slot)
        effective = max(prepared, self._time - 1 - late)
        if not commit or not prepared:
            self._append("abort", number, prepared)
            return
        self._append("commit", number, prepared, effective)
        self._show(number, 3, effective)

    def _append(
        self, kind: str, number: int = 0, decides: int = 0, effective: int | None = None
    ) -> None:
        entry = MadeUpEntry(self._time, kind, number, decides, effective or self._time)
        self._log.entries.append(entry)

    def _show(self, number: int, writes: int, effective: int) -> None:
        self._log.rows += [MadeUpRow(number, at, self._time, effective) for at in range(writes)]


@dataclass
class Model:
    """A query, its checkpoint, and the table that it writes to."""

    log: MadeUpLog
    start: int
    rule: NextEnd = next_end
    drops_by: str = "cut"
    """By what a table knows what it holds already: its cut, or (naively) the batch's number."""

    def __post_init__(self) -> None:
        self.log.visible = max(self.log.visible, self._entries_before(self.start))
        self.checkpoint = [begin(self.log, self.start)]
        self.table: list[MadeUpRow] = []
        self.covered = self.checkpoint[0].cut
        self.last_number = 0
        self.seen: list[tuple[Offset, Offset, list[MadeUpRow]]] = []

    def _entries_before(self, time: int) -> int:
        return 1 + sum(entry.time < time for entry in self.log.entries[1:])

    def run(self, program: bytes) -> None:
        for byte in program:
            kind, amount = byte & 3, byte >> 2
            if kind == 0:
                self.log.visible = min(len(self.log.entries), self.log.visible + amount % 9)
            elif kind in (1, 2):
                self.step(Limit(1 + amount % 7) if amount % 8 else Limit())
            elif amount % 2:
                del self.checkpoint[max(1, len(self.checkpoint) - amount // 2) :]
            elif self.seen:
                self.again(amount % len(self.seen))
        self.finish()

    def step(self, limit: Limit) -> None:
        """One micro-batch: planned, read, applied in one commit."""
        start = self.checkpoint[-1]
        end = self.rule(self.log, start, limit)
        if end == start:
            return
        assert start.cut <= end.cut
        assert start.shards[NAME].until <= end.shards[NAME].until, "until fell"
        assert end.shards[NAME].start <= end.cut or end.after is not None
        assert self.log.entry_at(end.shards[NAME].start)
        assert Offset.parse(end.text) == end
        self.checkpoint.append(end)
        rows = self.log.scan(*batch(start.text, end.text))
        self.seen.append((start, end, rows))
        self._check_batch(start, end, rows)
        self._apply(len(self.checkpoint) - 1, end, rows)

    def _check_batch(self, start: Offset, end: Offset, rows: list[MadeUpRow]) -> None:
        due = [r for r in self.log.rows if start.cut < r.effective <= end.cut and self._wanted(r)]
        assert rows == due, "a batch that is not what lies between its cuts"

    def _apply(self, number: int, end: Offset, rows: list[MadeUpRow]) -> None:
        if self.drops_by == "number":
            if number > self.last_number:
                self.table += rows
                self.last_number, self.covered = number, end.cut
        elif end.cut > self.covered:
            self.table += [row for row in rows if row.effective > self.covered]
            self.covered = end.cut
        self.check()

    def again(self, number: int) -> None:
        start, end, rows = self.seen[number]
        if start.after is not None and start.began is None:  # "now" is another after a crash
            start = begin(self.log, self.log.reached() + 1)
        assert self.log.scan(*batch(start.text, end.text)) == rows, "another answer"

    def check(self) -> None:
        """The table is what a snapshot read at its cut sees, less what was before the start."""
        expected = {r for r in self.log.rows if r.effective <= self.covered and self._wanted(r)}
        assert len(self.table) == len(set(self.table)), "a write twice"
        assert set(self.table) == expected, "a write lost, too early, or a part of one"

    def _wanted(self, row: MadeUpRow) -> bool:
        return row.time >= self.start

    def finish(self) -> None:
        """With all visible and decided, all that a query began with must be in."""
        self.log.visible = len(self.log.entries)
        for _ in range(2 * len(self.log.entries) + 2):
            self.step(Limit(4))
        assert self.covered == self.log.reached(), "a query that does not come to the end"
        self.check()
        for number in range(len(self.seen)):
            self.again(number)

    def check_ranges(self) -> None:
        """Any range that is read at once holds what its ends say."""
        first = begin(self.log, self.start)
        for entry in self.log.entries:
            if entry.time <= first.cut:
                continue
            end = end_at(self.log, first, entry.time)
            rows = self.log.scan(first, end)
            assert end.cut == entry.time
            assert set(rows) == {
                row for row in self.log.rows if row.effective <= end.cut and self._wanted(row)
            }


def check_model(log: bytes, query: bytes, start: int, rule: NextEnd = next_end) -> None:
    """Run a query over a log; an assertion fails where something is lost, doubled or torn."""
    made = MadeUpLog(log)
    times = [entry.time for entry in made.entries]
    model = Model(made, times[start % len(times)] + start % 2, rule)
    model.run(query)
    model.check_ranges()
