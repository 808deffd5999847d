"""The models that learn: the dual encoder and the single one, as transformers has them.

They are what `hf:` and `cross:` load once they are saved; how they are trained is left to others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from tokenizers import Encoding

from ulr.encoders.lengths import alike_in_length
from ulr.encoders.pretrained import choose_device, find_model, quiet, require_torch, unusable
from ulr.encoders.tokens import whole_characters
from ulr.encoders.transformer import mean_of_tokens
from ulr.errors import TrainingError
from ulr.files import sha256
from ulr.train.batches import Batch
from ulr.train.losses import MARGIN, OBJECTIVES, binary_cross_entropy

if TYPE_CHECKING:
    import torch

_TOKENS = {"cpu": 512, "cuda": 65536, "mps": 16384}
_HEADS = ("pooler.", "classifier", "score", "pre_")
DUAL, SINGLE = tuple(OBJECTIVES), "single"


class Learner(Protocol):
    """A model in training."""

    model: Any
    device: torch.device
    base_sha256: str

    def figures(self, batch: Batch) -> torch.Tensor:
        """How each text and its categories compare, (n_texts, n_categories)."""
        ...

    def loss(self, figures: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """What is minimised."""
        ...

    def fits(self, figures: torch.Tensor) -> torch.Tensor:
        """The figures turned so that higher is better."""
        ...

    def save(self, folder: Path) -> None:
        """Write the model and its tokenizer as transformers does."""
        ...


class _Pretrained:
    """A model out of safetensors with its tokenizer, whose batches are padded to their longest."""

    def __init__(
        self, base: str | Path, head: str, max_tokens: int, device: str | None, seed: int
    ) -> None:
        require_torch()
        import torch
        import transformers

        folder = find_model(base)
        weights = sorted(folder.glob("model*.safetensors"))
        if not weights:
            raise TrainingError(f"{base} has no model.safetensors; only such weights are read.")
        self.base_sha256 = " ".join(map(sha256, weights))
        self.device = choose_device(device)
        more: dict[str, Any] = {"num_labels": 1} if head != "AutoModel" else {}
        with quiet(), unusable(f"{base} cannot be loaded"), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # for a head that the base does not have
            self._tokens = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False
            )
            self.model, info = getattr(transformers, head).from_pretrained(
                folder,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **more,
            )
        self._refuse_missing(str(base), head, info)
        self.model.to(self.device)
        self._fast = self._tokens.backend_tokenizer
        self._fast.no_padding()
        self._pad = self._tokens.pad_token_id or 0
        self._types = "token_type_ids" in self._tokens.model_input_names
        self.max_tokens = max_tokens
        self._try_longest(str(base))

    def _refuse_missing(self, base: str, head: str, info: Any) -> None:
        """Leave out an unused pooler; refuse a base of which anything but a new head is missing."""
        new = ("pooler.",) if head == "AutoModel" else _HEADS
        lacking = [key for key in info["missing_keys"] if not any(part in key for part in new)]
        if lacking:
            raise TrainingError(
                f"{base} lacks weights of {type(self.model).__name__}, such as {min(lacking)}; "
                "it was saved as another kind of model."
            )
        if head == "AutoModel" and info["missing_keys"]:
            self.model.pooler = None

    def _try_longest(self, base: str) -> None:
        """Say so now if the model has no positions for so many tokens."""
        import torch

        self._fast.enable_truncation(self.max_tokens)
        longest = self._fast.encode_batch_fast(["a " * self.max_tokens])
        with unusable(f"{base} cannot read {self.max_tokens} tokens"), torch.inference_mode():
            self.model(**self._inputs(longest))

    def _each(self, texts: Sequence[Any], read: Callable[..., torch.Tensor]) -> torch.Tensor:
        """What `read` makes of texts or pairs, those of like length padded and run together.

        Names of categories are short but for a few; padded to the longest, most of a batch would
        be padding.
        """
        import torch

        encoded = self._fast.encode_batch_fast(list(texts))
        groups = list(
            alike_in_length([len(each.ids) for each in encoded], _TOKENS[self.device.type])
        )
        made = [read(self._inputs([encoded[place] for place in group])) for group in groups]
        back = np.argsort(np.concatenate(groups), kind="stable")
        return torch.cat(made)[torch.from_numpy(back).to(self.device)]

    def _inputs(self, encoded: Sequence[Encoding]) -> dict[str, torch.Tensor]:
        """Token numbers, (n_texts, n_tokens), as the model takes them."""
        import torch

        shape = len(encoded), max(len(each.ids) for each in encoded)
        given = {
            "input_ids": np.full(shape, self._pad, dtype=np.int64),
            "attention_mask": np.zeros(shape, dtype=np.int64),
        }
        if self._types:
            given["token_type_ids"] = np.zeros(shape, dtype=np.int64)
        for row, each in enumerate(encoded):
            end = len(each.ids)
            given["input_ids"][row, :end] = each.ids
            given["attention_mask"][row, :end] = 1
            if self._types:
                given["token_type_ids"][row, :end] = each.type_ids
        return {name: torch.from_numpy(each).to(self.device) for name, each in given.items()}

    def save(self, folder: Path) -> None:
        """Write the model and its tokenizer as transformers does."""
        self._fast.no_truncation()
        with quiet():
            self.model.save_pretrained(folder)
            self._tokens.save_pretrained(folder)


class DualEncoder(_Pretrained):
    """Texts and categories through the same transformer, each once, their tokens averaged.

    Parameters
    ----------
    base
        A folder, or the name of a model on the Hugging Face hub.
    objective
        One of `OBJECTIVES`.
    max_tokens
        Tokens of a text that are read.
    device
        ``cpu``, ``cuda``, ``cuda:N`` or ``mps``; None for the fastest there is.
    margin
        γ of the contrastive hinge loss.
    seed
        Nothing of a dual encoder is random at its start.
    """

    def __init__(
        self,
        base: str | Path,
        *,
        objective: str = "dot",
        max_tokens: int = 128,
        device: str | None = None,
        margin: float = MARGIN,
        seed: int = 1,
    ) -> None:
        super().__init__(base, "AutoModel", max_tokens, device, seed)
        self._objective = OBJECTIVES[objective]
        self._more = {"margin": margin} if objective == "l2" else {}

    def vectors(self, texts: list[str]) -> torch.Tensor:
        """Mean of the last states of each text's tokens, (n_texts, n_dims)."""
        self._fast.enable_truncation(self.max_tokens)
        return self._each([whole_characters(text) for text in texts], self._pooled)

    def _pooled(self, given: dict[str, torch.Tensor]) -> torch.Tensor:
        states = self.model(**given).last_hidden_state
        return mean_of_tokens(states.float(), given["attention_mask"])

    def figures(self, batch: Batch) -> torch.Tensor:
        """Dot products or squared distances, (n_texts, n_categories)."""
        import torch

        places = torch.from_numpy(batch.places).to(self.device)
        categories = self.vectors(batch.categories)[places]
        return self._objective.compare(self.vectors(batch.texts), categories)

    def loss(self, figures: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Binary cross entropy, or the contrastive hinge loss."""
        return self._objective.loss(figures, real, **self._more)

    def fits(self, figures: torch.Tensor) -> torch.Tensor:
        """The figures turned so that higher is better."""
        return figures if self._objective.higher_fits else -figures


class SingleEncoder(_Pretrained):
    """A category and a text read together, ``[CLS] category [SEP] text [SEP]``, to one score.

    The score is linear in the state of the first token, as the base's head for classification
    makes it. Only the text is cut where a pair is too long.

    Parameters
    ----------
    base, max_tokens, device
        As for `DualEncoder`.
    seed
        Of the head's first weights, where the base has none.
    """

    def __init__(
        self,
        base: str | Path,
        *,
        max_tokens: int = 128,
        device: str | None = None,
        seed: int = 1,
    ) -> None:
        super().__init__(base, "AutoModelForSequenceClassification", max_tokens, device, seed)

    def figures(self, batch: Batch) -> torch.Tensor:
        """Scores, (n_texts, n_categories); 0 where there is no category."""
        import torch

        rows, columns = np.nonzero(batch.real)
        names = self._shortened([whole_characters(each) for each in batch.categories])
        texts = [whole_characters(each) for each in batch.texts]
        pairs = [
            (names[batch.places[row, column]], texts[row])
            for row, column in zip(rows, columns, strict=True)
        ]
        self._fast.enable_truncation(self.max_tokens, strategy="only_second")
        scores = self._each(pairs, lambda given: self.model(**given).logits[:, 0].float())
        figures = torch.zeros(batch.real.shape, dtype=scores.dtype, device=self.device)
        figures[torch.from_numpy(rows), torch.from_numpy(columns)] = scores
        return figures

    def _shortened(self, names: list[str]) -> list[str]:
        """Names cut, where they are very long, so that half of a pair is left to the text."""
        self._fast.enable_truncation(self.max_tokens // 2)
        encoded = self._fast.encode_batch(names, add_special_tokens=False)
        return [
            name[: each.offsets[-1][1]] if each.overflowing else name
            for name, each in zip(names, encoded, strict=True)
        ]

    def loss(self, figures: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Binary cross entropy."""
        return binary_cross_entropy(figures, real)

    def fits(self, figures: torch.Tensor) -> torch.Tensor:
        """The scores as they are."""
        return figures
