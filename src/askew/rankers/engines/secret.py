"""Tokens, passwords and keys: read from an environment variable or a file when they are used, and kept nowhere."""

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
# Variables of other letters exist, but a token that was given in place of a name would pass for one.
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,60}")


@dataclass(frozen=True)
class SecretSource:
    """Where a secret is: the name of an environment variable, or a file. ``what`` begins the names of the settings."""

    what: str
    env: str | None = None
    file: str | Path | None = None

    def __post_init__(self) -> None:
        """A secret that was given in place of a name must not come out in a message."""
        if self.env is not None and self.file is not None:
            raise ConfigError(f"give {self.what}_env= or {self.what}_file=, one of the two")
        if self.env is not None and not _VARIABLE.fullmatch(self.env):
            raise ConfigError(
                f"{self.what}_env= should be the name of an environment variable in capital letters; found another "
                "text, which is not shown because it may be the secret itself"
            )

    def __bool__(self) -> bool:
        return self.env is not None or self.file is not None

    def read(self) -> str:
        """The secret, read now; later messages never show it."""
        found = self._from_file() if self.file is not None else os.environ.get(str(self.env), "").strip()
        if not found:
            raise ConfigError(f"{self.what}_env= names {self.env}, and this environment variable is not set")
        # What cannot be sent in a header would be quoted in an error message of the library that sends it.
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
    """How requests show who asks: a secret under a scheme, and headers whose values are environment variables.

    ``scheme`` is bearer (a token), basic (``user:password``), apikey (as Elasticsearch has it) or ``header:NAME``.
    """

    source: SecretSource
    scheme: str = "bearer"
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be sent before anything is."""
        if self.scheme.startswith(_HEADER):
            _check_header(self.scheme.removeprefix(_HEADER))
        else:
            one_of(self.scheme, (*SCHEMES, f"{_HEADER}NAME"), "auth_scheme=")
        for name, variable in self.variables.items():
            _check_header(name)
            SecretSource("headers", variable)

    def __bool__(self) -> bool:
        return bool(self.source) or bool(self.variables)

    def headers(self) -> dict[str, str]:
        """The headers of a request, read anew for each, so that a token that was renewed is used."""
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


def _check_header(name: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError("auth_scheme= and headers= should name a header in letters, digits and hyphens")
