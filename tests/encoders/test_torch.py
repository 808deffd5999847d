"""Hugging Face encoders on PyTorch: vectors of transformers, settings of the model, only safetensors."""

import hashlib
import json
import logging
import pickle
import shutil

import numpy as np
import pytest
from hub_server import HubServer
from python_process import run_python
from tiny import TEXTS, save_encoder, torch, transformers

from ulr import load_encoder
from ulr.encoders import TransformerEncoder, encode_texts, label_encoder
from ulr.errors import EncoderError

st = pytest.importorskip(
    "sentence_transformers", reason="install it with: pip install 'ulr[torch]'"
)


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("roberta"), "roberta")


@pytest.fixture
def copy(roberta, tmp_path):
    """A folder of RoBERTa to damage."""
    return shutil.copytree(roberta, tmp_path / "copy")


def states(folder, text, max_tokens=64):
    """Final hidden states of one text by transformers alone, (n_tokens, n_dims)."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    given = tokenizer(text, truncation=True, max_length=max_tokens, return_tensors="pt")
    with torch.no_grad():
        return model(**given).last_hidden_state[0].numpy()


def edit(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_vectors_of_a_plain_model_are_means_of_its_last_hidden_states(kind, tmp_path):
    folder = save_encoder(tmp_path, kind)
    encoder = load_encoder(f"hf:{folder}")
    special = ["before <pad> after </s>", "cut \ud83d off"]
    vectors = encode_texts(encoder, [*TEXTS, *special])
    assert (encoder.n_dims, encoder.max_tokens, encoder.label_encoder) == (32, 64, None)
    for text, vector in zip([*TEXTS, special[0], "cut \ufffd off"], vectors, strict=True):
        np.testing.assert_allclose(vector, states(folder, text).mean(axis=0), atol=1e-5)


def test_default_length_is_128_and_the_positions_limit_it(roberta, tmp_path):
    assert TransformerEncoder(save_encoder(tmp_path, max_position_embeddings=514)).max_tokens == 128
    assert np.isfinite(TransformerEncoder(roberta).encode(["goal " * 300])).all()


def test_weights_in_several_files_are_one_model(roberta, copy):
    (copy / "model.safetensors").unlink()
    transformers.AutoModel.from_pretrained(roberta).save_pretrained(copy, max_shard_size="30KB")
    assert len(list(copy.glob("model-*.safetensors"))) > 1
    parts, whole = TransformerEncoder(copy), TransformerEncoder(roberta)
    np.testing.assert_array_equal(parts.encode(TEXTS), whole.encode(TEXTS))
    next(iter(copy.glob("model-*.safetensors"))).unlink()
    with pytest.raises(EncoderError, match=r"copy cannot be loaded: "):
        TransformerEncoder(copy)


@pytest.fixture
def save_st(roberta, tmp_path):
    kinds = pytest.importorskip("sentence_transformers.sentence_transformer.modules")

    def save(pooling="mean", normalize=True, dense=False, **settings):
        modules = [kinds.Transformer(str(roberta), max_seq_length=20), kinds.Pooling(32, pooling)]
        modules += [kinds.Dense(32, 8)] * dense + [kinds.Normalize()] * normalize
        model = st.SentenceTransformer(modules=modules, device="cpu", **settings)
        model.save(str(tmp_path / "st"), create_model_card=False)
        return tmp_path / "st"

    return save


PROMPTS = {"document": "a harbour: ", "query": "the goal: "}


@pytest.mark.parametrize(
    ("settings", "described"),
    [
        ({}, "mean, 20 tokens, unit length"),
        ({"pooling": "cls", "normalize": False}, "cls, 20 tokens"),
        ({"dense": True}, "20 tokens, Dense, unit length"),
        ({"truncate_dim": 8}, "20 tokens, unit length, 8 dimensions"),
        ({"prompts": PROMPTS}, "unit length, prompt 'a harbour: '"),
        ({"prompts": {"own": "rain: "}, "default_prompt_name": "own"}, "prompt 'rain: '"),
    ],
)
def test_settings_are_those_of_the_models_own_files(save_st, settings, described):
    folder = save_st(**settings)
    encoder = TransformerEncoder(folder)
    model = st.SentenceTransformer(str(folder), device="cpu")
    own = "prompts" in settings and "document" in settings["prompts"]
    expected = model.encode(TEXTS, prompt=PROMPTS["document"] if own else None)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    assert (encoder.max_tokens, encoder.n_dims) == (20, expected.shape[1])
    assert encoder.fingerprint.endswith(described)
    if own:
        labels = label_encoder(encoder)
        expected = model.encode(TEXTS, prompt=PROMPTS["query"])
        np.testing.assert_allclose(labels.encode(TEXTS), expected, atol=1e-5)
        assert labels.fingerprint != encoder.fingerprint
    else:
        assert label_encoder(encoder) is encoder


def test_older_folders_state_length_and_case_in_another_file(save_st):
    folder = save_st()
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 514, "do_lower_case": True})
    )
    encoder = TransformerEncoder(folder)
    assert encoder.max_tokens == 64  # a length beyond the positions is cut to them
    assert "lower case" in encoder.fingerprint
    assert np.isfinite(encoder.encode(["goal " * 900])).all()


def pickled(folder):
    model = transformers.AutoModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")


def own_code(folder):
    edit(folder / "config.json", model_type="own", auto_map={"AutoConfig": "own.Config"})
    (folder / "own.py").write_text("raise SystemExit('code was run')")


DAMAGES = {
    "has no safetensors weights, and pickled ones, such as": pickled,
    r"names a file of weights in its config\.json": lambda folder: edit(
        folder / "config.json", transformers_weights="adapter_model.bin"
    ),
    "model cannot be loaded: ": own_code,
    r"lacks weights of RobertaModel, such as encoder\.lay": lambda folder: edit(
        folder / "config.json", num_hidden_layers=3
    ),
    r"is not a model: it has no config\.json": lambda folder: (folder / "config.json").unlink(),
    "has no tokenizer: neither": lambda folder: (folder / "tokenizer.json").unlink(),
    "cannot be loaded: .*": lambda folder: (folder / "model.safetensors").write_bytes(
        b"no tensors"
    ),
    "cannot be loaded: .*modules|cannot be loaded: ": lambda folder: (
        folder / "modules.json"
    ).write_text("[1"),
    "from 0 to 113, but the model knows only 50": lambda folder: save_encoder(
        folder, "bert", vocab_size=50
    ),
    "is an adapter; merge it": lambda folder: (folder / "adapter_config.json").write_text("{}"),
}


@pytest.mark.parametrize("match", DAMAGES)
def test_damaged_and_unsafe_folders_are_refused_with_one_sentence(roberta, tmp_path, match):
    folder = shutil.copytree(roberta, tmp_path / "model")
    DAMAGES[match](folder)
    with pytest.raises(EncoderError, match=match) as refused:
        TransformerEncoder(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"max_tokens": 2}, "max_tokens must be at least 3 for .*; got 2"),
        ({"max_tokens": 65}, "at most 64 for .* no positions .*; got 65"),
        ({"device": "tpu"}, "cannot be loaded: .*device"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({}, "there are no texts to encode"),
        ({"name_or_path": "./missing"}, "'./missing' is neither a folder nor the name of a mod"),
        ({"name_or_path": "a/b/c"}, "'a/b/c' is neither a folder nor the name of a mod"),
        ({"name_or_path": "/no/such"}, "'/no/such' is neither a folder nor the name of a mod"),
        ({"name_or_path": "two words"}, "'two words' is neither a folder nor the name of a mod"),
    ],
)
def test_bad_settings_and_names_are_refused(roberta, settings, match):
    with pytest.raises(EncoderError, match=match):
        TransformerEncoder(**{"name_or_path": roberta} | settings).encode([])


def test_loading_shows_nothing_and_restores_the_settings(tmp_path, capfd, caplog):
    folder = save_encoder(tmp_path)
    transformers.AutoModelForMaskedLM.from_pretrained(folder).save_pretrained(folder)
    logger = logging.getLogger("transformers.modeling_utils")
    before = logger.level, list(logger.filters)
    capfd.readouterr()
    caplog.clear()
    TransformerEncoder(folder)
    assert (capfd.readouterr(), caplog.text) == (("", ""), "")
    assert (logger.level, list(logger.filters)) == before
    transformers.AutoModel.from_pretrained(folder)
    assert "Loading weights" in capfd.readouterr().err


def test_models_of_the_hub_are_fetched_once_and_errors_are_sentences(copy, tmp_path):
    (copy / "pytorch_model.bin").write_bytes(b"never fetched")
    with HubServer(copy) as hub:
        address = f"http://127.0.0.1:{hub.server_port}"
        code = f"""
import urllib.request
from ulr.encoders import TransformerEncoder

def attempt(name):
    try:
        encoder = TransformerEncoder(name)
        print(encoder.spec, encoder.fingerprint)
    except Exception as error:
        print(type(error).__name__, error)

attempt("org/tiny"); attempt("org/unknown"); attempt("org/gated")
urllib.request.urlopen("{address}/stop").close()
attempt("org/tiny"); attempt("org/other")
"""
        given = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "0"}
        run = run_python("-c", code, **given)
    (copy / "pytorch_model.bin").unlink()
    fetched, unknown, gated, again, unreachable = run.stdout.splitlines()
    assert fetched == again == f"hf:org/tiny {TransformerEncoder(copy).fingerprint}"
    assert unknown.startswith("EncoderError 'org/unknown' is neither a folder nor a public model")
    assert gated.startswith("EncoderError the model 'org/gated' requires consent")
    assert unreachable.startswith("EncoderError 'org/other' is not a folder, and the Hugging Face")
    assert run.stderr == ""
    assert not list((tmp_path / "cache").rglob("*.bin"))


def test_the_fingerprint_names_weights_and_vocabulary_and_a_pickle_the_absolute_path(
    roberta, copy, monkeypatch
):
    files = (roberta / "model.safetensors", roberta / "tokenizer.json")
    weights, tokenizer = (hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in files)
    monkeypatch.chdir(roberta.parent)
    encoder = TransformerEncoder(roberta.name)
    assert encoder.fingerprint == f"hf {weights} {tokenizer}, mean, 64 tokens"
    packed = pickle.dumps(encoder)
    monkeypatch.chdir("/")
    assert pickle.loads(packed).spec == encoder.spec == f"hf:{roberta}"
    edit(copy / "tokenizer.json")
    assert TransformerEncoder(copy).fingerprint != encoder.fingerprint
