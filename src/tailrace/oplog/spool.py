"""The entries of transactions that have not ended yet, kept while an archive is read.

An archive can be read once and forwards only, but a transaction is unwound from its
last entry. What may be needed again waits in memory, and on disk once it is large;
the disk is given back when no transaction is open.
"""

from __future__ import annotations

import tempfile

from tailrace.oplog.entry import Entry

IN_MEMORY_BYTES = 1 << 20


class TransactionSpool:
    """Entries by their time, until their transaction ends."""

    def __init__(self) -> None:
        self._file: tempfile.SpooledTemporaryFile[bytes] | None = None
        """Made when there is something to keep, so that nobody has to close an unused one."""
        self._places: dict[int, tuple[int, int, int]] = {}
        self._end = 0

    def remember(self, entry: Entry) -> None:
        """Keep an entry that is not the end of its transaction."""
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115 - see close
        self._file.seek(self._end)
        self._file.write(entry.raw)
        self._places[entry.time] = (self._end, len(entry.raw), entry.previous or 0)
        self._end += len(entry.raw)

    def forget(self, last: Entry) -> None:
        """Drop the entries that lead up to the one that ended their transaction."""
        time = last.previous or 0
        while time in self._places:
            _, _, time = self._places.pop(time)
        if self._file is not None and self._end and not self._places:
            self._file.seek(0)
            self._file.truncate()
            self._end = 0

    def entry(self, time: int) -> bytes | None:
        """An entry that is kept, by its time."""
        place = self._places.get(time)
        if place is None or self._file is None:
            return None
        start, size, _ = place
        self._file.seek(start)
        return self._file.read(size)

    def close(self) -> None:
        """Give everything back."""
        if self._file is not None:
            self._file.close()
        self._file = None
        self._places.clear()
