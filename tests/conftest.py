"""The plugins of the test run, one concern each."""

pytest_plugins = [
    "tests.support.cluster",
    "tests.support.dev_servers",
    "tests.support.mongodb",
    "tests.support.postgres",
    "tests.support.server_logs",
]
