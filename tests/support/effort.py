"""How hard a test tries: a little in every run, as much as one likes in a soak.

``TAILRACE_SOAK`` is a factor; ``make soak`` sets it.
"""

from __future__ import annotations

import os


def effort(amount: int) -> int:
    """An amount of cases, seeds or seconds, times the factor of a soak."""
    return int(amount * float(os.environ.get("TAILRACE_SOAK") or 1))
