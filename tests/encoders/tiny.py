"""Tiny real models: RoBERTa and BERT of two layers, with vocabularies of their own."""

import json
import re

import pytest
from tokenizers import ByteLevelBPETokenizer

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ulr[torch]'")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install 'ulr[torch]'"
)

SENTENCES = [
    "The harbour froze over and the ferries stayed at the quay.",
    "Two goals in the last minute sent the visitors home with nothing.",
    "The bank raised its rate again, and builders felt it first.",
    "A small lamp, a long night and a letter that would not be written.",
    "Rain is expected in the north; the south stays dry and warm.",
]
TEXTS = [
    "The ferries stayed home",
    "",
    "Ein Straßenfest – 日本語 😀",
    "goal " * 30,
    "a\tb\nc",
    "x",
    "  Rain in the NORTH, rain again ",
]


def roberta_tokenizer():
    bpe = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(SENTENCES, vocab_size=400, special_tokens=special, show_progress=False)
    learned = json.loads(bpe.to_str())["model"]
    merges = [tuple(merge) for merge in learned["merges"]]
    return transformers.RobertaTokenizer(vocab=learned["vocab"], merges=merges)


def bert_tokenizer():
    words = sorted({word for sentence in SENTENCES for word in re.findall(r"\w+|\S", sentence)})
    letters = sorted(set("".join(words)))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *words])
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    return transformers.BertTokenizer(vocab=vocabulary, do_lower_case=False)


def config(kind, tokenizer, **more):
    """Two layers of 32 dimensions and room for 64 tokens."""
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.3,  # so that the vectors of different texts are far apart
    }
    if kind == "roberta":
        sizes |= {"max_position_embeddings": 66, "type_vocab_size": 1}
        return transformers.RobertaConfig(**sizes | more)
    return transformers.BertConfig(**sizes | {"max_position_embeddings": 64} | more)


TOKENIZERS = {"roberta": roberta_tokenizer, "bert": bert_tokenizer}


def save_encoder(folder, kind="roberta", seed=0, **more):
    """An encoder without a head, saved as any user of transformers would."""
    return _save(folder, kind, transformers.AutoModel, seed, more)


def save_scorer(folder, kind="bert", n_outputs=1, names=None, seed=0, **more):
    """A model with a classification head."""
    if names is None:
        more["num_labels"] = n_outputs
    else:
        more["id2label"] = dict(enumerate(names))
        more["label2id"] = {name: number for number, name in enumerate(names)}
    return _save(folder, kind, transformers.AutoModelForSequenceClassification, seed, more)


def _save(folder, kind, head, seed, more):
    tokenizer = TOKENIZERS[kind]()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = head.from_config(config(kind, tokenizer, **more))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
