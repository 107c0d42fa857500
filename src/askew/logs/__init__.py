"""Analyze a query log: find the reformulations in which users add terms of a group to their query.

The package can be called: ``askew.logs("log.tsv")`` is ``askew.logs.analyze.logs("log.tsv")``.
"""

import sys
from types import ModuleType
from typing import Any


class _Logs(ModuleType):
    """A package that can be called, so that the function has the name of the command."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from askew.logs.analyze import logs

        return logs(*args, **options)


sys.modules[__name__].__class__ = _Logs
