"""Change streams as a driver has them: ``watch``, and a stream that resumes by itself.

The machine decides (``machine``, ``profiles``); transports carry its requests. It
keeps the driver specification of today, and those of 1.5.1 and 1.6.0 on request.
"""

from tailrace.driver.async_stream import AsyncChangeStream
from tailrace.driver.document import RawDocument
from tailrace.driver.stores import AsyncMongoTokenStore, FileTokenStore, MongoTokenStore
from tailrace.driver.stream import ChangeStream
from tailrace.driver.watch import watch

__all__ = [
    "AsyncChangeStream",
    "AsyncMongoTokenStore",
    "ChangeStream",
    "FileTokenStore",
    "MongoTokenStore",
    "RawDocument",
    "watch",
]
