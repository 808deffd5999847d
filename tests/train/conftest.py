"""A two-layer RoBERTa, and texts whose categories can be learnt."""

import json
import random
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ulr[torch]'")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install 'ulr[torch]'"
)
from tokenizers import ByteLevelBPETokenizer  # noqa: E402

WORDS = {
    "sailing": ["harbour", "ferry", "anchor", "sail", "tide", "mast"],
    "football": ["goal", "keeper", "striker", "referee", "pitch", "corner"],
    "banking": ["loan", "rate", "teller", "deposit", "mortgage", "credit"],
    "baking": ["flour", "oven", "yeast", "crust", "dough", "sugar"],
    "gardening": ["tulip", "spade", "compost", "hedge", "seed", "lawn"],
    "astronomy": ["comet", "orbit", "lens", "galaxy", "planet", "dusk"],
    "knitting": ["wool", "needle", "stitch", "sock", "yarn", "scarf"],
    "chess": ["rook", "bishop", "pawn", "gambit", "castle", "mate"],
    "cycling": ["pedal", "wheel", "brake", "helmet", "chain", "saddle"],
    "beekeeping": ["hive", "honey", "queen", "smoke", "wax", "swarm"],
}


def sentence(category, seed, length=6):
    return " ".join(random.Random(f"{category} {seed}").choices(WORDS[category], k=length))


@pytest.fixture(scope="session")
def roberta(tmp_path_factory):
    """A folder of RoBERTa with two layers of 32 dimensions."""
    folder = tmp_path_factory.mktemp("roberta")
    bpe = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    lines = [" ".join([category, *words]) for category, words in WORDS.items()]
    bpe.train_from_iterator(lines, vocab_size=500, special_tokens=special, show_progress=False)
    learned = json.loads(bpe.to_str())["model"]
    merges = [tuple(merge) for merge in learned["merges"]]
    tokenizer = transformers.RobertaTokenizer(vocab=learned["vocab"], merges=merges)
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=130,
        type_vocab_size=1,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_natcat(path, n_rows, true_names, length, seed):
    """Write a file of NatCat's format; the first of `WORDS` are true, all others may be false."""
    names, rng, rows = list(WORDS), random.Random(seed), []
    for number in range(n_rows):
        true = rng.choice(true_names)
        others = names if len(true_names) == len(names) else names[len(true_names) :]
        false = rng.sample([each for each in others if each != true], 7)
        rows.append("\t".join([true, *false, sentence(true, number, length)]))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def natcat(tmp_path_factory):
    return write_natcat(
        tmp_path_factory.mktemp("natcat") / "tiny.train.data", 400, list(WORDS), 6, 7
    )


@pytest.fixture(scope="session")
def telling(tmp_path_factory):
    """A file where the category alone tells whether it is true."""
    path = tmp_path_factory.mktemp("telling") / "telling.data"
    return write_natcat(path, 300, list(WORDS)[:3], 1, 8)


@pytest.fixture(scope="session")
def words():
    return SimpleNamespace(of=WORDS, sentence=sentence)
