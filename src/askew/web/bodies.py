"""What comes with a request is counted as it comes, and not waited for without end."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from askew.web.problems import CODES, MESSAGES, Problem


def too_large(most: int) -> Problem:
    """More than is taken."""
    return Problem(413, CODES[413], f"the request is too large: at most {most:,} bytes are taken")


def limited(receive: Receive, most: int, seconds: float) -> Receive:
    """Counts what really comes, whatever the header said; a sender may be silent for so many seconds."""
    seen, whole = 0, False

    async def counted() -> Message:
        nonlocal seen, whole
        # After the whole body only the end of the connection comes, and that may take as long as it likes.
        message = await receive() if whole else await _soon(receive, seconds)
        seen, whole = seen + len(message.get("body", b"")), not message.get("more_body", False)
        if seen > most:
            raise HTTPException(413, too_large(most).message)
        return message

    return counted


async def _soon(receive: Receive, seconds: float) -> Message:
    try:
        async with asyncio.timeout(seconds):
            return await receive()
    except TimeoutError:
        raise HTTPException(408, MESSAGES[408]) from None
