"""The prompt bank. A prompt is a TOML file: facts about it, and two templates with {query}, {passages} and {count}.

``answer`` is what the prompt requests: ``queries`` (one candidate each), ``keywords`` (together one candidate) or a
``passage``. ``query_times`` is how many times the query is put before the keywords or the passage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from askew.core.errors import ConfigError, UnknownName, check_name, check_names
from askew.core.files import DATA, fingerprint
from askew.rewrite.lexical import read_toml

_SHIPPED = DATA / "prompts"
_FIELDS = ("query", "passages", "count")
_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")
_ANSWERS = ("queries", "keywords", "passage")


@dataclass(frozen=True)
class Prompt:
    """Two templates, and how to read the answers to them."""

    name: str
    system: str
    user: str
    version: int = 1
    about: str = ""
    source: str = "not stated"
    answer: str = "queries"
    query_times: int = 0
    max_chars: int = 300

    @property
    def uses_passages(self) -> bool:
        """Whether the templates have a place for passages."""
        return "{passages}" in self.system + self.user

    @property
    def hash(self) -> str:
        """A fingerprint of the templates and of the fields that determine how answers are read."""
        parts = [self.system, self.user, self.answer, self.query_times, self.max_chars]
        return fingerprint(parts, length=12)

    @property
    def id(self) -> str:
        """Name, version and fingerprint in one string."""
        return f"{self.name}@{self.version}:{self.hash}"

    def messages(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        """The messages for one query."""
        filled = {"system": fill(self.system, values), "user": fill(self.user, values)}
        return [{"role": role, "content": text} for role, text in filled.items() if text]


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace the known fields by their values in one pass: a field inside a value is not replaced."""
    return _FIELD.sub(lambda field: values.get(field[1], field[0]), template)


def shipped_prompts() -> list[str]:
    """The names of the prompts that come with askew."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def load_prompt(spec: str) -> Prompt:
    """Load a prompt by its name in the bank, or from a ``.toml`` file."""
    if spec in shipped_prompts():
        return _read(_SHIPPED / f"{spec}.toml")
    if not spec.endswith(".toml"):
        raise UnknownName("prompt", spec, shipped_prompts(), "⟨prompt⟩ (a shipped prompt, or a file ending in '.toml')")
    return _read(Path(spec))


def _read(path: Path) -> Prompt:
    facts, where = {"name": path.stem, **read_toml(path, "prompt")}, str(path)
    kinds = {field.name: field.type for field in fields(Prompt)}
    for key, value in facts.items():
        check_name("key", key, kinds, where)
        kind = int if kinds[key] == "int" else str
        if type(value) is not kind:
            raise ConfigError(f"{where}: the key {key!r} should be of the type {kind.__name__}, found {value!r}")
    for key in ("system", "user"):
        facts[key] = facts.get(key, "").strip()
        check_names("field", _FIELD.findall(facts[key]), _FIELDS, f"the prompt template {key!r} of {where}")
    prompt = Prompt(**facts)
    if "{query}" not in prompt.user:
        raise ConfigError(f"{where}: expected {{query}} in the template 'user', found none")
    if prompt.answer not in _ANSWERS:
        raise ConfigError(f"{where}: expected 'answer' to be one of {', '.join(_ANSWERS)}; found {prompt.answer!r}")
    if prompt.query_times < 0 or prompt.max_chars < 1:
        raise ConfigError(
            f"{where}: expected 'query_times' to be 0 or more and 'max_chars' to be 1 or more, "
            f"found query_times = {prompt.query_times} and max_chars = {prompt.max_chars}"
        )
    if prompt.answer == "queries" and prompt.query_times:
        raise ConfigError(
            f"{where}: 'query_times' is only for prompts with answer = 'keywords' or 'passage'; leave out 'query_times'"
        )
    return prompt
