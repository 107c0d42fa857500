"""Make a ranker plugin from an engine class, with the settings of the engine and those that all engines share."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

from askew.rankers.engines.ranker import EngineRanker
from askew.rankers.engines.settings import EngineSettings, without_how_asked


class EnginePlugin:
    """A factory of rankers, called with settings: ``http = EnginePlugin(HttpEngine)``.

    The parameters of the engine's constructor are its settings. Settings in the class attribute ``how_asked``, such as
    a time limit or the location of a secret, do not change results, so they are not part of the key of a build step.
    """

    def __init__(self, engine: type[Any]) -> None:
        self._engine = engine
        self.__doc__ = engine.__doc__
        self._shared = _parameters(EngineSettings)
        own = _parameters(engine)
        clash = sorted(own.keys() & (self._shared.keys() | {"index", "ranker"}))
        assert not clash, f"{engine.__name__}: rename the settings {clash}; all engines or rankers use these names"
        every = [*own.values(), *self._shared.values()]
        self.__signature__ = inspect.Signature(every, return_annotation=EngineRanker)
        self.__annotations__ = {one.name: one.annotation for one in every} | {"return": EngineRanker}

    def __call__(self, *values: Any, **settings: Any) -> EngineRanker:
        """Make a ranker with these settings."""
        given = self.__signature__.bind(*values, **settings).arguments
        shared = {name: value for name, value in given.items() if name in self._shared}
        own = {name: value for name, value in given.items() if name not in self._shared}
        return EngineRanker(self._engine(**own), EngineSettings(**shared))

    def named(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings that determine the results of the engine, in a form that may be published."""
        found = without_how_asked(settings, frozenset(getattr(self._engine, "how_asked", ())))
        # Separate host and path of an address, which are published, from the parameters of the request.
        return {name: _address_and_request(value) for name, value in found.items()}


def _address_and_request(value: Any) -> Any:
    return value.split("?", 1) if isinstance(value, str) and "://" in value and "?" in value else value


def _parameters(made: type[Any]) -> dict[str, inspect.Parameter]:
    hints = get_type_hints(made.__init__, include_extras=True)
    found = inspect.signature(made).parameters.values()
    return {
        one.name: one.replace(kind=inspect.Parameter.KEYWORD_ONLY if one.default is not one.empty else one.kind)
        .replace(annotation=hints.get(one.name, Any))
        for one in found
    }  # fmt: skip
