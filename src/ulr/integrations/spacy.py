"""spaCy: the pipeline component ``ulr``, which fills `doc.cats`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulr.classifier import Fitted, as_texts, load, save
from ulr.errors import ModelError, require

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc


class UlrCategorizer:
    """Gives the categories of a document the probabilities of the labels.

    The none label, if there is one, is a category too. A document without words has equal
    probabilities.

    Parameters
    ----------
    model
        Folder of a saved classifier; it is read when it is first needed.
    encoder
        Name of the encoder, if the classifier needs files outside installed packages.
    """

    def __init__(self, model: str | Path, encoder: str | None = None) -> None:
        self._model, self._encoder = str(model), encoder
        self._loaded: Fitted | None = None

    @property
    def _fitted(self) -> Fitted:
        if self._loaded is None:
            if not self._model:
                raise ModelError("the component 'ulr' needs config={'model': FOLDER}.")
            self._loaded = load(self._model, encoder=self._encoder)
        return self._loaded

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels; none while there is no model, as when spaCy loads a pipeline."""
        if self._loaded is None and not (self._model and Path(self._model).is_dir()):
            return ()
        return tuple(self._fitted.names[:-1].tolist())

    def __call__(self, doc: Doc) -> Doc:
        """Categorize a document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Categorize documents, a batch at a time."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            texts = as_texts([doc.text for doc in batch])
            found, chances = self._fitted.predict(texts), self._fitted.chances
            rows = chances.chances(found) if chances else found.probabilities
            for doc, row in zip(batch, rows.tolist(), strict=True):
                doc.cats.update(zip(self.labels, row, strict=True))
                yield doc

    def to_disk(self, path: str | Path, *, exclude: Any = ()) -> None:
        """Write the classifier into the folder of a pipeline."""
        save(self._fitted, path, overwrite=True)

    def from_disk(self, path: str | Path, *, exclude: Any = ()) -> UlrCategorizer:
        """Read the classifier from the folder of a pipeline."""
        self._loaded = load(path, encoder=self._encoder)
        return self


def make_component(nlp: Language, name: str, model: str, encoder: str | None) -> UlrCategorizer:
    """The component for a pipeline; spaCy calls this for ``nlp.add_pipe("ulr", config=…)``."""
    return UlrCategorizer(model, encoder)


require("spacy", "spacy").Language.factory(
    "ulr",
    assigns=["doc.cats"],
    default_config={"model": "", "encoder": None},
    func=make_component,
)
