"""The calendar that dates are shown in: any int64 of milliseconds, any time zone.

Python's own dates end with year 9999; the server's do not. Days are counted, so that
every date has its parts. A zone is an Olson name or an offset like ``+02:30``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tailrace.query.context import not_here, refused

DAY_MS = 86_400_000
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
UNKNOWN_ZONE = 40485
_ERA_DAYS, _ERA_YEARS = 146_097, 400
_EPOCH_SHIFT = 719_468
"""Days from the first of March of year 0 to 1970."""
_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d))?", re.ASCII)
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999
"""What Python's dates reach, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone: fixed minutes, or the rules of a place."""

    minutes: int = 0
    rules: ZoneInfo | None = None

    def offset_ms(self, millis: int) -> int:
        """How far local time is ahead of UTC at a moment."""
        if self.rules is None:
            return self.minutes * MINUTE_MS
        if not _FIRST + DAY_MS <= millis <= _LAST - DAY_MS:
            raise not_here(self.rules.key, "a time zone's rules are not known for that year")
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=millis)
        offset = moment.astimezone(self.rules).utcoffset()
        return round(offset.total_seconds() * 1000) if offset else 0

    def to_utc(self, local: int) -> int:
        """The moment at which clocks here show a local time; the earlier of two."""
        if self.rules is None:
            return local - self.minutes * MINUTE_MS
        if not _FIRST + DAY_MS <= local <= _LAST - DAY_MS:
            raise not_here(self.rules.key, "a time zone's rules are not known for that year")
        shown = datetime(1970, 1, 1) + timedelta(milliseconds=local)
        offset = shown.replace(tzinfo=self.rules).utcoffset()
        return local - (round(offset.total_seconds() * 1000) if offset else 0)


UTC = Zone()


@lru_cache(maxsize=256)
def zone_of(name: str) -> Zone:
    """A zone by its name, or the server's refusal."""
    found = _OFFSET.fullmatch(name)
    if found:
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        return Zone(-minutes if found[1] == "-" else minutes)
    if name in ("UTC", "GMT"):
        return UTC
    try:
        return Zone(rules=ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise refused(UNKNOWN_ZONE, f'unrecognized time zone identifier: "{name}"') from error


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date; months and days beyond their range carry."""
    year += (month - 1) // 12
    month = (month - 1) % 12 + 1
    year -= month <= 2
    era, of_era = divmod(year, _ERA_YEARS)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return (
        era * _ERA_DAYS
        + of_era * 365
        + of_era // 4
        - of_era // 100
        + of_year
        - _EPOCH_SHIFT
        + day
        - 1
    )


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970."""
    era, of_era = divmod(days + _EPOCH_SHIFT, _ERA_DAYS)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + (3 if shifted < 10 else -9)
    return year + era * _ERA_YEARS + (month <= 2), month, day


@dataclass(frozen=True, slots=True)
class Parts:
    """A moment as clocks and calendars of a zone show it."""

    days: int
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    millisecond: int
    offset_ms: int

    @property
    def weekday(self) -> int:
        """Sunday is 0."""
        return (self.days + 4) % 7

    @property
    def iso_weekday(self) -> int:
        """Monday is 1, Sunday 7."""
        return (self.days + 3) % 7 + 1

    @property
    def day_of_year(self) -> int:
        """The first of January is 1."""
        return self.days - days_of(self.year, 1, 1) + 1

    @property
    def week(self) -> int:
        """Weeks begin on Sunday; 0 is before the first of them."""
        return (self.day_of_year - 1 - self.weekday + 7) // 7

    @property
    def iso_week_year(self) -> int:
        """The year that the ISO week belongs to."""
        return date_of(self.days - self.iso_weekday + 4)[0]

    @property
    def iso_week(self) -> int:
        """The ISO week, from 1."""
        thursday = self.days - self.iso_weekday + 4
        return (thursday - days_of(date_of(thursday)[0], 1, 1)) // 7 + 1


def parts_of(millis: int, zone: Zone = UTC) -> Parts:
    """What a moment is in a zone."""
    offset = zone.offset_ms(millis)
    days, rest = divmod(millis + offset, DAY_MS)
    minutes, in_minute = divmod(rest, MINUTE_MS)
    return Parts(
        days, *date_of(days), *divmod(minutes, 60), *divmod(in_minute, 1000), offset_ms=offset
    )


def iso(millis: int) -> str:
    """A date as the server writes it: ISO 8601 in UTC."""
    parts = parts_of(millis)
    if not 0 <= parts.year <= 9999:
        raise refused(18537, "dates are only written of the years 0 to 9999")
    return (
        f"{parts.year:04}-{parts.month:02}-{parts.day:02}T{parts.hour:02}:{parts.minute:02}:"
        f"{parts.second:02}.{parts.millisecond:03}Z"
    )
