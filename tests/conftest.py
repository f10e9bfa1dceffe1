"""The plugins of the test run, one concern each, and how hypothesis runs.

Hypothesis judges how long an example and its making take by the wall clock, which on
a busy machine says nothing of the code: both judgements are off, everywhere.
"""

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.support.cluster",
    "tests.support.conformance",
    "tests.support.dev_servers",
    "tests.support.mongodb",
    "tests.support.postgres",
    "tests.support.server_logs",
    "tests.support.spark",
]

settings.register_profile("tailrace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tailrace")
