"""A connection of opensearch-py that logs nothing, because the library logs queries and answers.

This module is imported only when a connection is made.
"""

from __future__ import annotations

import threading
from typing import Any

from opensearchpy import Urllib3HttpConnection

from askew.rankers.engines.wire import Reply, status_error


class QuietConnection(Urllib3HttpConnection):  # type: ignore[misc]
    """The connection of the library, with errors that include the retry time and quote nothing."""

    _last = threading.local()

    def log_request_success(self, *_: Any, **__: Any) -> None:
        """Log nothing."""

    def log_request_fail(self, *_: Any, **__: Any) -> None:
        """Log nothing."""

    def get_response_headers(self, response: Any) -> Any:
        """The headers, which are also saved for an error that may follow."""
        self._last.headers = super().get_response_headers(response)
        return self._last.headers

    def _raise_warnings(self, warning_headers: Any) -> None:
        """Suppress warnings: a deprecation warning may quote the query."""

    def _raise_error(self, status_code: int, raw_data: Any, content_type: str | None = None) -> None:
        raise status_error(self.host, Reply(status_code, self._last.headers, b""), self.http_auth is not None)
