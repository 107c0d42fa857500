"""Addresses that may contain credentials: messages show them without credentials, and only the code that opens an
address gets all of it.

``Address`` is the type of every store, endpoint, cluster and collection that is named by a URL. ``without_secrets``
removes credentials from any text, such as the error message of a library that quotes a URL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, unquote_plus

HIDDEN = "[hidden]"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{0,30}"
_BEGIN = re.compile(rf"({_SCHEME})(:/{{1,2}})")
# The prefix of a chained fsspec URL, as in zip://a.zip::s3://bucket. It has no credentials.
_CHAIN = re.compile(rf"(?:{_SCHEME}(?:://[^:@?#]*)?::)+(?={_SCHEME}://)")
# If a URL was normalized as a path, only one slash follows the scheme.
_IN_TEXT = re.compile(rf"\b{_SCHEME}:/{{1,2}}[^\s\"'<>`|\\]+")
# The host of an address without a scheme, such as user:password@host:6379. That of NFaiRR(...)@10 must not match.
_HOST = re.compile(r"(?:[\w-]+(?:\.[\w-]+)+|localhost|[\w.-]+:\d+)(?:[:/]\S*)?$")
_NO_USER = re.compile(r"[\s()'\"]")
# In URLs of these schemes the part before the @ is the container, which is not secret unless it contains a colon.
_CONTAINER_BEFORE_HOST = {"abfs", "abfss", "wasb", "wasbs"}
# Parameters that distinguish two stores of the same name and are not secret.
_SHOWN_PARAMETERS = {"region", "scheme", "endpoint_override"}
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9._:/\[\]-]*")
_SECRET_NAME = re.compile(
    r"secret|passw|credential|(^|[-_.])(token|authorization)$|(api|access|account|private|subscription|functions)[-_.]?key"
    r"|signature$|^(sig|key|auth|pwd|bearer|code)$",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"(?<=[?&;])([A-Za-z0-9_.%-]+)=([^&;#\s\"'<>`|\\]+)")
# The least length of a secret (a password; a user name or fragment that may be a key) that is hidden in every text.
# A shorter one could be part of an ordinary word.
_LEAST, _LEAST_NAME = 8, 16
_known: set[str] = set()


class Address(str):
    """A folder or a URL. Its text has no user information, credentials or fragment; ``reveal`` returns all of it.

    Two addresses are equal if their texts without credentials are equal, so a store with a new key is the same store.
    """

    __slots__ = ("_whole",)
    _whole: str

    def __new__(cls, whole: str | os.PathLike[str]) -> Address:
        """Make an address from a text or path. An ``Address`` is returned unchanged."""
        if isinstance(whole, Address):
            return whole
        text = os.fspath(whole)
        address = super().__new__(cls, _shown(text))
        address._whole = text
        _known.update(_pieces(text, sure=True))
        return address

    def __reduce__(self) -> tuple[type[Address], tuple[str]]:
        """Pickle the address with its credentials, so that another process can open it."""
        return Address, (self._whole,)

    def reveal(self) -> str:
        """The address with its credentials. Use it only to open the address, never in a message or a file."""
        return self._whole

    @property
    def scheme(self) -> str:
        """The part before ``://``; empty for a path."""
        return self._whole.partition("://")[0] if "://" in self._whole else ""

    def scrub(self, text: str) -> str:
        """Remove the hidden parts of this address from a message, such as the error of a library that opened it."""
        text = text.replace(self._whole, str(self))
        for piece in sorted(_pieces(self._whole), key=len, reverse=True):
            if len(piece) >= 4:
                text = text.replace(piece, HIDDEN)
            elif re.search(rf"(?<!\w){re.escape(piece)}(?!\w)", text):
                return "the error message is not printed, because it contains a secret part of the address"
        return without_secrets(text)


def without_secrets(text: str) -> str:
    """The text without credentials: without those of URLs in it, and without those of every ``Address`` made so far."""
    if ":/" in text:
        text = _IN_TEXT.sub(lambda url: _clean(url[0]), text)
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def without_secret_values(value: Any) -> Any:
    """Settings fit for publication: hides values of settings named like a secret, and credentials in addresses."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN
            if is_secret_name(str(key)) and inner and not isinstance(inner, int | float)
            else without_secret_values(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secret_values(inner) for inner in value]
    if not isinstance(value, str):
        return value
    is_address = (_BEGIN.match(value) or _user_of(value)[0] == 0) and not re.search(r"\s", value)
    return without_secrets(str(Address(value)) if is_address else value)


def is_secret_name(name: str) -> bool:
    """Whether a setting or parameter of this name is likely to be a key or a password."""
    return _SECRET_NAME.search(name) is not None


def know_secrets(value: Any) -> None:
    """Remember the secret values of these settings, so that ``without_secrets`` hides them in any text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if is_secret_name(str(key)) and isinstance(inner, str):
                _known.update(_written(inner, _LEAST))
            know_secrets(inner)
    elif isinstance(value, list | tuple):
        for item in value:
            know_secrets(item)
    elif isinstance(value, str):
        Address(value)


def _shown(text: str) -> str:
    """The address without user information and fragment, and with only the parameters of ``_SHOWN_PARAMETERS``."""
    chain = _CHAIN.match(text)
    if chain is not None:
        return chain[0] + _shown(text[chain.end() :])
    begin = _BEGIN.match(text)
    if begin is None:
        start, end = _user_of(text)
        return text if start < 0 else text[:start] + text[end:]
    rest = text[begin.end() :]
    user, host = _split_user(rest)
    if host is None:
        return f"{begin[0]}{HIDDEN}"
    place, _, query = host.partition("#")[0].partition("?")
    container = f"{user}@" if user and _is_container(begin[1], user) else ""
    pairs = [parameter.partition("=") for parameter in query.split("&") if parameter]
    shown = [f"{key}={value}" for key, _, value in pairs if key in _SHOWN_PARAMETERS and _PLAIN_VALUE.fullmatch(value)]
    return f"{begin[0]}{container}{place}{'?' if shown else ''}{'&'.join(shown)}"


def _user_of(text: str) -> tuple[int, int]:
    """Where ``user:password@`` begins and ends in an address without a scheme; (-1, -1) without one.

    One pass for each @, because a pattern for the whole address takes minutes on a text of thousands of colons. It ends
    at the last @ before a host, since a password may contain the others.
    """
    after, at = 0, text.find("@")
    while at >= 0:
        user = _NO_USER.split(text[after:at])[-1]
        name, colon, _ = user.partition(":")
        if colon and _HOST.match(text, at + 1):
            last = text.rfind("@")
            return at - len(user) + name.rfind("/") + 1, (last if _HOST.match(text, last + 1) else at) + 1
        after, at = at + 1, text.find("@", at + 1)
    return -1, -1


def _split_user(rest: str) -> tuple[str, str | None]:
    """The user information, and the text from the host on.

    The text is None if a password seems to contain ``/``, ``?`` or ``#``: the start of the host is then not known.
    """
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        user, _, last = authority.rpartition("@")
        return user, last + rest[len(authority) :]
    path = rest.partition("?")[0]
    port = authority.rpartition(":")[2]
    if ":" in authority and not authority.startswith("[") and (not port.isdigit() or "@" in path) and "@" in rest:
        return authority, None
    return "", rest


def _pieces(text: str, sure: bool = False) -> set[str]:
    """The hidden parts of an address, as written and percent-decoded, since a library may quote either form.

    With ``sure``, only parts that are unlikely to occur in other texts: parts of some length, and no parameters except
    secret ones.
    """
    chain = _CHAIN.match(text)
    text = text[chain.end() :] if chain else text
    begin = _BEGIN.match(text)
    if begin is None:
        start, end = _user_of(text)
        return _parts(text[: end - 1], sure) if start == 0 else set()
    rest = text[begin.end() :]
    user, host = _split_user(rest)
    pieces = set() if _is_container(begin[1], user) else _parts(user, sure)
    if host is None:
        return pieces | _parts(rest.rpartition("@")[0], sure)
    host, _, fragment = host.partition("#")
    for parameter in host.partition("?")[2].split("&"):
        name, _, value = parameter.partition("=")
        if name not in _SHOWN_PARAMETERS:
            pieces |= _written(value, _LEAST if sure else 0) if not sure or is_secret_name(name) else set()
    return pieces | _written(fragment, _LEAST_NAME if sure else 0)


def _parts(user: str, sure: bool) -> set[str]:
    name, _, password = user.partition(":")
    return {
        *_written(user if password else "", _LEAST if sure else 0),
        *_written(password, _LEAST if sure else 0),
        *_written(name, _LEAST_NAME if sure else 0),
    }


def _written(piece: str, least: int) -> set[str]:
    return {form for form in (piece, unquote(piece), unquote_plus(piece)) if len(form) >= max(least, 1)}


def _is_container(scheme: str, user: str) -> bool:
    return scheme.lower() in _CONTAINER_BEFORE_HOST and ":" not in user


def _clean(url: str) -> str:
    """A URL found in a text, without its credentials. Parameters that are not secret and text after it are kept."""
    begin = _BEGIN.match(url)
    assert begin is not None, "expected a text that begins with the scheme of a URL, such as https://"
    user, host = _split_user(url[begin.end() :])
    if host is None:
        return f"{begin[0]}{HIDDEN}"
    place = f"{begin[0]}{user + '@' if user and _is_container(begin[1], user) else ''}{host}"
    return _ASSIGNED.sub(lambda match: f"{match[1]}={HIDDEN}" if is_secret_name(match[1]) else match[0], place)


# Removes local paths from published files: a path is replaced by the name of its file or folder.

# A path in a sentence or a command: a root and at least two names. After a letter it is part of another word or URL.
_PATH_IN_TEXT = re.compile(
    r"(?<![\w:/.~-])(?:file:/{1,3}|~[\w.-]*/|/)(?:[^\s/'\"<>|,;()\[\]{}=]+/)+[^\s/'\"<>|,;()\[\]{}=]*"
)
_WHOLE = re.compile(r"(?:/|~|\.{1,2}/|file:/)[^\n]*")


def name_of(path: str) -> str:
    """The last name of a path. A path without names is returned unchanged."""
    return PurePosixPath(path.removeprefix("file:")).name or path


def without_local_paths(text: str) -> str:
    """The text with every absolute path replaced by the name of its file or folder."""
    if _is_path(text):
        return name_of(text.rstrip("/"))
    home = str(Path.home())
    if len(home) > 1:
        # This also covers paths with blanks, whose end the pattern below cannot find.
        text = text.replace(f"{home}/", "")
    return _PATH_IN_TEXT.sub(lambda path: name_of(path[0].rstrip("/")), text)


def public_text(text: str) -> str:
    """A text without local paths and credentials."""
    return without_local_paths(without_secrets(text))


def public(value: Any, paths: Iterable[str] = ()) -> Any:
    """JSON values fit for publication, without local paths and credentials in keys and values.

    ``paths`` are known local paths. They are also found if they contain blanks.
    """
    longest_first = sorted(paths, key=len, reverse=True)
    if isinstance(value, Mapping):
        return {public(key, longest_first): public(inner, longest_first) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [public(inner, longest_first) for inner in value]
    if not isinstance(value, str):
        return value
    for path in longest_first:
        value = value.replace(path, name_of(path.rstrip("/")))
    return public_text(value)


def local_paths(value: Any) -> set[str]:
    """All values of the settings that are local paths."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return set[str]().union(*map(local_paths, value))
    return {value} if isinstance(value, str) and _is_path(value) else set()


def _is_path(text: str) -> bool:
    return len(text) > 1 and _WHOLE.fullmatch(text) is not None and "://" not in text.removeprefix("file://")


def public_settings(value: Any) -> Any:
    """Settings fit for publication: without local paths, credentials and values of settings named like a secret."""
    return public(without_secret_values(value), local_paths(value))
