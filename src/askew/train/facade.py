"""Trainers, classifiers and selectors for scripts and notebooks, with fit, predict, save and load.

``Trainer`` trains all models of ``askew train``. ``Classifier`` and ``Selector`` also predict with trained models.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from askew.core import defaults
from askew.core.errors import ConfigError, DataError, StoreError, check_name
from askew.core.files import parse_json, write_whole
from askew.core.groups import Groups, GroupsLike
from askew.core.measure import new_column
from askew.core.protocols import ClassifierPlugin
from askew.pairs.recipe import Recipe, groups_of
from askew.rewrite.classifiers import make_classifier, named_classifier
from askew.train.common import Progress, Trained, by_name, from_names
from askew.train.selector import EFFECTIVENESS, KEEP_ORIGINAL, LEAN, Built, built_of, choose, read_built, read_settings

WHERE = "askew train"
_ABOUT = "classifier.json"
_TRAINED = "transformer"
_SELECTED = {"query_id": pl.String, "original_text": pl.String, "text": pl.String, "is_reformulated": pl.Boolean}


def trainers() -> dict[str, tuple[Callable[..., Trained], type[Any], type[Any] | None]]:
    """The kinds of models: the training function, its settings, and the class of its data if it has several parts."""
    from askew.train import adapter as grepbias
    from askew.train import classifier, generator, negatives, ranker, rewriter, selector

    return {
        "classifier": (classifier.train_classifier, classifier.ClassifierSettings, None),
        "selector": (selector.train_selector, selector.SelectorSettings, None),
        "ranker": (ranker.train_ranker, ranker.RankerJob, negatives.RankerData),
        "adapter": (grepbias.train_adapter, grepbias.AdapterJob, None),
        "generator": (generator.train_generator, generator.GeneratorSettings, None),
        "rewriter": (rewriter.train_rewriter, rewriter.RewriterSettings, None),
    }


class Trainer:
    """Trains a model of a kind: ``Trainer("classifier", epochs=3).fit("queries.csv", out="model")``.

    ``settings`` are the settings of ``askew train KIND`` by name. A preset is applied first, then the other settings.
    The setting ``preset`` names the preset; for a rewriter this is the setting ``kind``, and for an adapter ``method``.
    ``trainer.names`` lists all settings.

    >>> Trainer("ranker", preset="original", epochs=2).settings.pace.epochs
    2.0
    """

    def __init__(self, kind: str, /, **settings: Any) -> None:
        known = trainers()
        check_name("kind of model", kind, known)
        self.kind, self._given = kind, settings
        self._train, made, self._data = known[kind]
        self.settings: Any = from_names(made, settings, WHERE)

    @property
    def names(self) -> dict[str, Any]:
        """All settings by name, with their values."""
        return by_name(self.settings)

    def fit(
        self, *data: object, out: str | Path, device: str | None = None, command: str = "",
        progress: Progress | None = None, **named: object,
    ) -> Trained:  # fmt: skip
        """Train on data and write the model to the folder ``out``.

        The folder must be new, empty, or from the same training. The data depends on the kind of model: labeled queries
        for a classifier; the store of a build or a published dataset for a selector; a collection for a generator;
        pairs of queries for a rewriter; the folder of GrepBiasIR for an adapter; and ``run``, ``docs``, ``queries`` and
        ``qrels`` for a ranker.
        """
        if self._data is None and (len(data) != 1 or named):
            raise ConfigError(
                f"Trainer({self.kind!r}).fit: expected one source of data, found {len(data) + len(named)}"
            )
        source = data[0] if self._data is None else self._data(*data, **named)
        return self._train(source, Path(out), self.settings, device, command or f"askew.{self}.fit(...)", progress)

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in self._given.items() if value is not None]
        return f"Trainer({', '.join([repr(self.kind), *given])})"


class Classifier:
    """Classify texts by the group that they are about: ``Classifier("lexical", groups="age").predict(texts)``.

    ``name`` is a classifier (``askew list classifiers``). ``lexical`` counts words of the groups and needs no training.
    ``query-groups`` is a trained model that askew ships, for the groups female and male. ``auto`` is ``query-groups``
    if its model is installed and the groups are female and male, and otherwise ``lexical``. ``transformer`` is an
    encoder that ``fit`` trains with the settings of ``askew train classifier``; with ``model=FOLDER``, it is a model
    that is already trained.

    >>> groups = {"old": ["elderly", "retired"], "young": ["teen", "teens"]}
    >>> classifier = Classifier("lexical", groups=groups)
    >>> classifier.predict(["jobs for teens", "best tea"])
    ['young', 'neutral']
    """

    def __init__(self, name: str = defaults.CLASSIFIER, groups: GroupsLike | None = None, **settings: Any) -> None:
        self.groups = None if groups is None else Groups.of(groups)
        self.name = str(named_classifier({"classifier": name, **settings}, self.groups)["classifier"])
        self.settings = settings
        self.trained: Trained | None = None
        self._made: ClassifierPlugin | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of the columns of ``predict_proba``."""
        return self._classifier.labels

    def fit(self, texts: Sequence[str], labels: Sequence[str], device: str | None = None) -> Classifier:
        """Train on texts with their labels. ``trained`` then has the results of a cross-validation.

        The classes are neutral and the groups; without groups, the classes are the distinct labels. Only
        ``transformer`` is trained. For any other classifier, the labels are only checked.
        """
        if len(texts) != len(labels):
            raise DataError(
                f"classifier: expected a label for each text, found {len(texts)} texts and {len(labels)} labels"
            )
        for text in (*texts, *labels):
            if not isinstance(text, str):
                raise DataError(f"classifier: expected texts and labels that are strings, found {text!r}")
        if self.name != _TRAINED:
            other = next((label for label in labels if label not in self.labels), None)
            if other is not None:
                raise DataError(
                    f"classifier {self.name}: expected the labels {', '.join(self.labels)}, found {other!r}; if your "
                    "labels are other groups, name these groups in 'groups'"
                )
            return self
        ids = [str(number) for number in range(len(texts))]
        table = pl.DataFrame({"query_id": ids, "text": list(texts), "label": list(labels)})
        folder = _kept_for(self)
        classes = {"classes": tuple(sorted(set(labels)))} if self.groups is None else {}
        trainer = Trainer("classifier", **{**classes, **self.settings, "groups": self.groups})
        self.trained = trainer.fit(table, out=folder, device=device)
        self._made = make_classifier({"classifier": _TRAINED, "model": str(folder)})
        return self

    def predict(self, texts: Sequence[str]) -> list[str | None]:
        """The label of each text; None if the classifier abstains."""
        return list(self._classifier.classify(list(texts)).names())

    def predict_proba(self, texts: Sequence[str]) -> pl.DataFrame:
        """The probability of each label: one row per text, one column per label."""
        found = self._classifier.classify(list(texts))
        return pl.DataFrame(found.probabilities, schema=list(found.labels), orient="row")

    def save(self, folder: str | Path) -> None:
        """Write the classifier to a new folder: its settings, and the model if ``fit`` has trained one."""
        self._classifier  # noqa: B018 - raises an error if the classifier cannot be built
        place = _copied(None if self.trained is None else self.trained.folder, Path(folder))
        own = {} if self.trained is not None else self.settings
        groups = {} if self.groups is None else self.groups.as_section()
        facts = {"classifier": self.name, "groups": groups, "settings": own, "trained": self.trained is not None}
        write_whole(place / _ABOUT, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> Classifier:
        """Load a classifier from a folder written by ``save`` or ``askew train classifier``."""
        place = Path(folder)
        if not (place / _ABOUT).is_file():
            if not (place / "config.json").is_file():
                raise DataError(f"{place}: expected a classifier that was saved or trained, found none")
            return cls(_TRAINED, model=str(place))
        try:
            facts = parse_json((place / _ABOUT).read_bytes())
            model = {"model": str(place)} if facts["trained"] else {}
            groups = groups_of(Recipe(str(place.name), {"groups": facts["groups"]}))
            return cls(facts["classifier"], groups, **facts["settings"], **model)
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{place / _ABOUT}: expected a file of Classifier.save ({type(error).__name__})") from None

    @property
    def _classifier(self) -> ClassifierPlugin:
        if self._made is None:
            if self.name == _TRAINED and "model" not in self.settings:
                raise ConfigError(
                    "the classifier 'transformer' is not trained yet; call fit(texts, labels), or set 'model' to the "
                    "folder of a trained model"
                )
            self._made = make_classifier({"classifier": self.name, **self.settings}, self.groups)
        return self._made

    def __repr__(self) -> str:
        return f"Classifier({self.name!r}, groups={self.groups!r})"


class Selector:
    """Select one of the reformulations of each query: ``Selector().fit(store).predict(candidates)``.

    ``predict`` needs no judgements. The argument ``candidates`` of ``predict`` has the reformulations of each query.
    ``settings`` are the settings of ``askew train selector``. A cross-encoder reads the texts of the query and of each
    candidate, and the candidate with the highest score is selected.
    """

    def __init__(self, **settings: Any) -> None:
        self._trainer = Trainer("selector", **settings)
        self.trained: Trained | None = None
        self._folder: Path | None = None

    def fit(self, pairs: object, device: str | None = None, progress: Progress | None = None) -> Selector:
        """Train on the store of a build or a published dataset (a folder), or on a table of pairs.

        A table has the columns query_id, original_text and text, and the columns for the labels: fair and negative, or
        gain_RR_10 for ``learns="effectiveness"`` and ``"no-loss"``. ``trained`` then has the measures on held-out
        queries.
        """
        folder = _kept_for(self)
        source = pairs if isinstance(pairs, str | Path) else _table_of(pairs)
        self.trained = self._trainer.fit(source, out=folder, device=device, progress=progress)
        self._folder = folder
        return self

    def predict(self, candidates: object, device: str | None = None) -> pl.DataFrame:
        """The selected text for each query: columns query_id, original_text, text and is_reformulated.

        ``candidates`` are ``{query: [reformulation, ...]}``, a table with query_id, original_text and text, or the
        store of a build. A query without candidates keeps its text.
        """
        folder = self._trained_folder()
        if isinstance(candidates, Mapping):
            pairs = [
                (str(at), str(query), text) for at, (query, texts) in enumerate(candidates.items()) for text in texts
            ]
            table = pl.DataFrame(pairs, schema=dict.fromkeys(list(_SELECTED)[:3], pl.String), orient="row")
            found = self.predict(table, device) if pairs else pl.DataFrame(schema=_SELECTED)
            ids = [str(at) for at in range(len(candidates))]
            queries = pl.DataFrame({"query_id": ids, "original_text": list(map(str, candidates))})
            joined = queries.join(found.drop("original_text"), on="query_id", how="left", maintain_order="left")
            text = pl.col("text").fill_null(pl.col("original_text"))
            return joined.with_columns(text, pl.col("is_reformulated").fill_null(False))
        built = read_built(Path(candidates)) if isinstance(candidates, str | Path) else _table_of(candidates)
        rows = choose(folder, built, device)
        texts = built.table["text"].to_list()
        chosen = zip(built.originals, rows.tolist(), strict=True)
        columns = {
            "query_id": built.query_ids,
            "original_text": built.originals,
            "text": [original if row == KEEP_ORIGINAL else texts[row] for original, row in chosen],
            "is_reformulated": rows != KEEP_ORIGINAL,
        }
        return pl.DataFrame(columns, schema=_SELECTED)

    def save(self, folder: str | Path) -> None:
        """Write the trained selector to a new folder."""
        _copied(self._trained_folder(), Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Selector:
        """Load a selector from a folder written by ``save`` or ``askew train selector``."""
        made = cls()
        made._folder = Path(folder)
        read_settings(made._folder)
        return made

    def _trained_folder(self) -> Path:
        if self._folder is None:
            raise ConfigError("selector: it is not trained yet; call fit(store), or Selector.load(folder)")
        return self._folder

    def __repr__(self) -> str:
        return f"Selector({'not trained' if self._folder is None else 'trained'})"


def _table_of(pairs: Any) -> Built:
    """Candidates from a table in memory."""
    frame = pl.DataFrame(pairs)
    scored = [text for text in (EFFECTIVENESS, LEAN) if new_column(text) in frame.columns]
    return built_of(frame, scored, whole=False)


def _kept_for(owner: object) -> Path:
    """A temporary folder that is removed together with an object."""
    kept = tempfile.mkdtemp(prefix="askew-")
    weakref.finalize(owner, shutil.rmtree, kept, ignore_errors=True)
    return Path(kept) / "model"


def _copied(source: Path | None, folder: Path) -> Path:
    """Create a new folder, and copy the files of ``source`` if it is given."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"{folder}: expected a new or an empty folder, found one with files; choose another")
    folder.mkdir(parents=True, exist_ok=True)
    if source is not None:
        shutil.copytree(source, folder, dirs_exist_ok=True)
    return folder
