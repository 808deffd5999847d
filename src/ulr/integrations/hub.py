"""The Hugging Face hub: a classifier as a model repository, of JSON and safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from huggingface_hub import ModelCard, ModelHubMixin
from sklearn.utils.validation import check_is_fitted

from ulr import ZeroShotClassifier, __version__
from ulr.encoders import AnyEncoder, find_folder
from ulr.files import temporary_folder

_FILES = ("model.json", "arrays.safetensors")
_CARD = Path(__file__).with_name("model_card.md")


class HubClassifier(  # type: ignore[call-arg]
    ZeroShotClassifier,
    ModelHubMixin,  # type: ignore[misc]
    library_name="ulr",
    pipeline_tag="text-classification",
    tags=["zero-shot-classification", "text-classification"],
    model_card_template=_CARD.read_text(encoding="utf-8"),
):
    """A `ulr.ZeroShotClassifier` with ``save_pretrained``, ``from_pretrained`` and ``push_to_hub``.

    ``HubClassifier.load(folder)`` makes one of a saved classifier. ``model_card_kwargs`` of
    ``save_pretrained`` and ``push_to_hub`` may have a ``title`` and a ``description``.

    Examples
    --------
    >>> from ulr.integrations import HubClassifier
    >>> texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    >>> clf = HubClassifier(["sports", "business"], encoder="static").fit(texts)
    >>> clf.push_to_hub("me/news")  # doctest: +SKIP
    >>> HubClassifier.from_pretrained("me/news").predict(["A late goal"])  # doctest: +SKIP
    """

    # The parameters are in model.json. What a stranger's config.json says, such as the name of another
    # encoder, is never read.
    _hub_mixin_config: dict[str, Any] = {}  # noqa: RUF012

    def _save_pretrained(self, save_directory: Path) -> None:
        check_is_fitted(self)
        with temporary_folder() as folder:
            self.save(folder / "model")
            for name in _FILES:
                (save_directory / name).write_bytes((folder / "model" / name).read_bytes())
        names = dict(enumerate(self.fitted_.names[:-1].tolist()))
        config = json.dumps({"model_type": "ulr", "id2label": names}, ensure_ascii=False, indent=1)
        (save_directory / "config.json").write_text(config, encoding="utf-8")

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Upload the classifier; options are those of ``huggingface_hub.ModelHubMixin``."""
        card = {"name": repo_id, **(options.pop("model_card_kwargs", None) or {})}
        return super().push_to_hub(repo_id, model_card_kwargs=card, **options)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        encoder: str | AnyEncoder | None = None,
        cache: str | Path | None = None,
        **options: Any,
    ) -> Self:
        """Read a classifier from a folder or from the hub.

        Parameters
        ----------
        pretrained_model_name_or_path
            A folder, or the name of a repository.
        encoder, cache
            As of `ulr.ZeroShotClassifier.load`.
        **options
            Of the download: ``revision``, ``token``, ``cache_dir``, ``local_files_only`` and others of
            ``huggingface_hub.snapshot_download``.
        """
        folder = find_folder(pretrained_model_name_or_path, _FILES, **options)
        return cls.load(folder, encoder=encoder, cache=cache)

    def generate_model_card(self, **given: Any) -> ModelCard:
        """The README of the repository: what the labels are, and how to load the classifier."""
        labels = [
            {"name": _cell(each.name), "phrases": [_cell(phrase) for phrase in each.phrases]}
            for each in self.label_set_
        ]
        about = {"encoder": self.fitted_.encoder_name, "method": self.method_, "labels": labels}
        return super().generate_model_card(version=__version__, **about | given)


def _cell(text: str) -> str:
    """A text within a table of Markdown."""
    return text.replace("|", "\\|")
