"""Tokens, passwords and keys. They are read from an environment variable or a file at each use and never stored."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from askew.core.address import know_secrets
from askew.core.errors import ConfigError, one_of

SCHEMES = ("bearer", "basic", "apikey")
_HEADER = "header:"
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,60}")
# Lower-case variable names exist, but are refused: a token given by mistake could look like one.
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,60}")


@dataclass(frozen=True)
class SecretSource:
    """The location of a secret: an environment variable or a file. ``what`` is the prefix of the setting names."""

    what: str
    env: str | None = None
    file: str | Path | None = None

    def __post_init__(self) -> None:
        """Check the location. A secret that was given in place of a name must not appear in a message."""
        if self.env is not None and self.file is not None:
            raise ConfigError(f"give either {self.what}_env= or {self.what}_file=, not both")
        if self.env is not None and not _VARIABLE.fullmatch(self.env):
            raise ConfigError(
                f"{self.what}_env= should be the name of an environment variable in capital letters; found another "
                "text, which is not shown because it may be the secret itself"
            )

    def __bool__(self) -> bool:
        return self.env is not None or self.file is not None

    def read(self) -> str:
        """Read the secret, and register it so that later messages never show it."""
        found = self._from_file() if self.file is not None else os.environ.get(str(self.env), "").strip()
        if not found:
            raise ConfigError(f"{self.what}_env= names {self.env}, but this environment variable is not set")
        # The HTTP library would quote characters that it cannot send in a header in its error message.
        if not all(" " <= char <= "~" for char in found):
            raise ConfigError(f"{self.what}_{'file' if self.file else 'env'}=: the secret should be printable ASCII")
        know_secrets({"token": found})
        return found

    def _from_file(self) -> str:
        try:
            lines = Path(str(self.file)).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise ConfigError(f"{self.what}_file= {self.file}: cannot be read ({why})") from None
        if not lines:
            raise ConfigError(f"{self.what}_file= {self.file}: the file is empty")
        return lines


@dataclass(frozen=True)
class Authentication:
    """The authentication of requests: a secret with a scheme, and headers with values from environment variables.

    ``scheme`` is bearer (a token), basic (``user:password``), apikey (as in Elasticsearch) or ``header:NAME``.
    """

    source: SecretSource
    scheme: str = "bearer"
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the scheme and the header names before any request."""
        if self.scheme.startswith(_HEADER):
            _check_header(self.scheme.removeprefix(_HEADER), "auth_scheme=")
        else:
            one_of(self.scheme, (*SCHEMES, f"{_HEADER}NAME"), "auth_scheme=")
        for name, variable in self.variables.items():
            _check_header(name, "headers_env=")
            SecretSource("headers", variable)

    def __bool__(self) -> bool:
        return bool(self.source) or bool(self.variables)

    def headers(self) -> dict[str, str]:
        """The headers of a request. Secrets are read for each request, so that a renewed token is used."""
        found = {name: SecretSource("headers", variable).read() for name, variable in self.variables.items()}
        return found | (self._own(self.source.read()) if self.source else {})

    def _own(self, secret: str) -> dict[str, str]:
        if self.scheme.startswith(_HEADER):
            return {self.scheme.removeprefix(_HEADER): secret}
        if self.scheme == "basic":
            encoded = base64.b64encode(secret.encode()).decode()
            know_secrets({"token": encoded})
            know_secrets({"password": secret.partition(":")[2]})
            return {"Authorization": f"Basic {encoded}"}
        return {"Authorization": f"{'Bearer' if self.scheme == 'bearer' else 'ApiKey'} {secret}"}


def _check_header(name: str, setting: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError(f"{setting}: the name of a header must have only letters, digits and hyphens")
