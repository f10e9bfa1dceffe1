"""The logs of the servers that lived while a test failed, kept.

They are copied to the folder that ``TAILRACE_SERVER_LOGS`` names, else to
``test-logs/`` in the repository, into one folder for each failed test.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.embedded.folder import LOGS_VARIABLE, ServerFolder

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Copy the logs when a test's set-up, body or clean-up failed."""
    report = yield
    if report.failed and ServerFolder.live:
        target = logs_folder() / re.sub(r"[^\w.-]+", "_", item.nodeid)[-150:]
        for folder in list(ServerFolder.live):
            folder.copy_logs(target)
        report.sections.append(("Server logs", str(target)))
    return report


def logs_folder() -> Path:
    """Where the logs of failed tests go."""
    return Path(os.environ.get(LOGS_VARIABLE) or REPOSITORY / "test-logs")
