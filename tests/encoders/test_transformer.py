"""Hugging Face encoders on PyTorch: vectors of transformers, in any batch, only safetensors."""

import hashlib
import json
import logging
import os
import pickle
import queue
import shutil
import subprocess
import sys
import threading
from logging.handlers import QueueHandler

import numpy as np
import pytest
from hub_server import HubServer
from tiny import TEXTS, bert_tokenizer, save_encoder, torch, transformers

from ulr.encoders import Encoder, encode_texts
from ulr.encoders.batching import batches_by_length
from ulr.encoders.pretrained import DUAL, SINGLE, Pretrained, quiet
from ulr.encoders.transformer import TransformerEncoder
from ulr.encoders.weights import install_command
from ulr.errors import EncoderError


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("roberta"), "roberta")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("bert"), "bert")


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
def test_vectors_are_means_of_the_last_hidden_states(kind, request):
    folder = request.getfixturevalue(kind)
    vectors = TransformerEncoder(folder).encode(TEXTS)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector, states(folder, text).mean(axis=0), atol=1e-5)


def test_cls_pooling_is_the_state_of_the_first_token(bert):
    vectors = TransformerEncoder(bert, pooling="cls").encode(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector, states(bert, text)[0], atol=1e-5)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_do_not_depend_on_order_and_batches(kind, pooling, request):
    folder = request.getfixturevalue(kind)
    encoder = TransformerEncoder(folder, pooling=pooling)
    together = encoder.encode(TEXTS)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    backwards = encoder.encode(TEXTS[::-1])[::-1]
    small = TransformerEncoder(folder, pooling=pooling, batch_tokens=70).encode(TEXTS)
    for other in (alone, backwards, small):
        np.testing.assert_allclose(together, other, atol=1e-5)
    assert np.abs(together[0] - together[1]).max() > 0.1


def test_it_is_an_encoder_with_the_stated_dimensions(roberta):
    encoder = TransformerEncoder(roberta)
    assert isinstance(encoder, Encoder)
    assert encode_texts(encoder, TEXTS).shape == (len(TEXTS), encoder.n_dims) == (len(TEXTS), 32)


def test_many_labels_keep_their_places(roberta):
    labels = [f"{i} {'north' * (i % 3)}" for i in range(1100)]
    encoder = TransformerEncoder(roberta)
    vectors = encode_texts(encoder, labels)
    for i in (0, 511, 512, 1099):
        np.testing.assert_allclose(vectors[i], encoder.encode([labels[i]])[0], atol=1e-5)


def test_long_texts_are_truncated_and_counted(roberta):
    encoder = TransformerEncoder(roberta, max_tokens=12)
    long = "The harbour froze over and the ferries stayed at the quay, " * 3
    vectors = encoder.encode([long, "x", long + " again"])
    np.testing.assert_allclose(vectors[0], states(roberta, long, 12).mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-5)
    assert encoder.truncated == 2
    encoder.encode([long])
    assert encoder.truncated == 3


def test_texts_of_exactly_the_limit_are_whole(roberta):
    n_tokens = len(states(roberta, TEXTS[0]))
    encoder = TransformerEncoder(roberta, max_tokens=n_tokens)
    encoder.encode(TEXTS[:1])
    assert encoder.truncated == 0


def test_lower_casing_is_a_choice(roberta):
    plain, lower = TransformerEncoder(roberta), TransformerEncoder(roberta, lowercase=True)
    expected = plain.encode(["rain in the north"])
    np.testing.assert_allclose(lower.encode(["Rain in the NORTH"]), expected, atol=1e-6)
    assert np.abs(plain.encode(["Rain in the NORTH"]) - expected).max() > 0.1


def test_half_a_character_is_replaced(roberta):
    encoder = TransformerEncoder(roberta)
    np.testing.assert_allclose(*encoder.encode(["cut \ud83d off", "cut \ufffd off"]), atol=1e-6)


def test_text_that_spells_a_special_token_is_as_the_tokenizer_has_it(roberta):
    text = "before <pad> after </s>"
    vector = TransformerEncoder(roberta).encode([text, "x " * 20])[0]
    np.testing.assert_allclose(vector, states(roberta, text).mean(axis=0), atol=1e-5)


def test_length_is_limited_by_the_positions_of_the_model(roberta, bert):
    for folder in (roberta, bert):
        assert TransformerEncoder(folder).max_tokens == 64
        with pytest.raises(
            EncoderError, match=r"must be at most 64 for .* no positions .*; got 65"
        ):
            TransformerEncoder(folder, max_tokens=65)
        TransformerEncoder(folder, max_tokens=64).encode(["goal " * 300])


def test_default_length_is_128(tmp_path):
    assert TransformerEncoder(save_encoder(tmp_path, max_position_embeddings=514)).max_tokens == 128


def test_half_precision_stays_close(roberta):
    encoder = TransformerEncoder(roberta, precision="bfloat16", device="cpu")
    vectors, exact = encoder.encode(TEXTS), TransformerEncoder(roberta).encode(TEXTS)
    assert vectors.dtype == np.float32
    assert 0 < np.abs(vectors - exact).max() < 0.2
    assert encoder.fingerprint == TransformerEncoder(roberta).fingerprint


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_gpu_gives_what_the_cpu_gives(roberta, device):
    try:
        encoder = TransformerEncoder(roberta, device=device)
    except EncoderError as error:
        pytest.skip(str(error))
    exact = TransformerEncoder(roberta, device="cpu").encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS), exact, atol=0.05)


def test_fingerprint_names_weights_vocabulary_and_settings(roberta, copy, tmp_path):
    def fingerprint(folder, **settings):
        return TransformerEncoder(folder, **settings).fingerprint

    weights = hashlib.sha256((roberta / "model.safetensors").read_bytes()).hexdigest()[:16]
    tokenizer = hashlib.sha256((roberta / "tokenizer.json").read_bytes()).hexdigest()[:16]
    assert fingerprint(roberta) == f"hf {weights} {tokenizer}, mean, 64 tokens"
    assert fingerprint(copy) == fingerprint(roberta)
    edit(copy / "tokenizer.json")
    others = {
        fingerprint(save_encoder(tmp_path / "other", seed=1)),
        fingerprint(copy),
        fingerprint(roberta, pooling="cls"),
        fingerprint(roberta, max_tokens=32),
        fingerprint(roberta, lowercase=True),
    }
    assert len(others | {fingerprint(roberta)}) == 6


def test_weights_in_several_files_are_one_model(roberta, copy):
    model = transformers.AutoModel.from_pretrained(roberta)
    (copy / "model.safetensors").unlink()
    model.save_pretrained(copy, max_shard_size="30KB")
    assert len(list(copy.glob("model-*.safetensors"))) > 1
    parts, whole = TransformerEncoder(copy), TransformerEncoder(roberta)
    np.testing.assert_array_equal(parts.encode(TEXTS), whole.encode(TEXTS))
    assert parts.fingerprint != whole.fingerprint
    next(iter(copy.glob("model-*.safetensors"))).unlink()
    with pytest.raises(EncoderError, match=r"is incomplete: it has no model-.*safetensors"):
        TransformerEncoder(copy)


def test_pickle_is_a_reference_with_the_settings(roberta, monkeypatch):
    monkeypatch.chdir(roberta.parent)
    encoder = TransformerEncoder(roberta.name, max_tokens=9, lowercase=True, pooling="cls")
    packed = pickle.dumps(encoder)
    monkeypatch.chdir("/")
    again = pickle.loads(packed)
    assert len(packed) < 1000
    assert again.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))


def test_spec_makes_it_again_where_the_settings_are_the_usual_ones(roberta):
    assert TransformerEncoder(roberta, device="cpu").spec == f"hf:{roberta}"
    assert TransformerEncoder(roberta, max_tokens=20).spec is None


@pytest.fixture(scope="module")
def st():
    return pytest.importorskip("sentence_transformers")


@pytest.fixture
def save_st(st, roberta, tmp_path):
    kinds = pytest.importorskip("sentence_transformers.sentence_transformer.modules")

    def save(pooling="mean", normalize=True, dense=False, **settings):
        folder = str(tmp_path / "st")
        modules = [kinds.Transformer(str(roberta), max_seq_length=20), kinds.Pooling(32, pooling)]
        if dense:
            modules.append(kinds.Dense(32, 8))
        if normalize:
            modules.append(kinds.Normalize())
        model = st.SentenceTransformer(modules=modules, device="cpu", **settings)
        model.save(folder, create_model_card=False)
        return tmp_path / "st"

    return save


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("normalize", [True, False])
def test_vectors_are_those_of_sentence_transformers(st, save_st, pooling, normalize):
    folder = save_st(pooling, normalize)
    encoder = TransformerEncoder(folder)
    expected = st.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    assert encoder.max_tokens == 20
    assert encoder.truncated == 3
    assert ("unit length" in encoder.fingerprint) == normalize


def test_older_folders_state_length_case_and_pooling_otherwise(st, save_st):
    folder = save_st()
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 9, "do_lower_case": True})
    )
    modes = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, **modes})
    )
    encoder = TransformerEncoder(folder)
    assert (encoder.max_tokens, encoder.lowercase, encoder.pooling) == (9, True, "cls")
    expected = st.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)


def test_arguments_override_the_folder(save_st, roberta):
    encoder = TransformerEncoder(save_st(), pooling="cls", max_tokens=12)
    expected = states(roberta, TEXTS[3], 12)[0]
    found = encoder.encode(TEXTS)[3]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-5)


def test_a_length_beyond_the_positions_is_cut_to_them(save_st):
    folder = save_st()
    edit(folder / "sentence_bert_config.json", max_seq_length=514)
    encoder = TransformerEncoder(folder)
    assert encoder.max_tokens == 64
    assert np.isfinite(encoder.encode(["goal " * 900])).all()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"dense": True}, "modules Transformer, Pooling, Dense, Normalize, where only"),
        ({"pooling": "max"}, r"pooling max, .*give SentenceTransformer\('.*st'\) itself"),
        ({"pooling": ("mean", "cls")}, r"the pooling mean \+ cls, where only"),
        (
            {"prompts": {"q": "query: "}, "default_prompt_name": "q"},
            "has a default_prompt_name, where only",
        ),
        ({"truncate_dim": 8}, "has a truncate_dim, where only"),
    ],
)
def test_unsupported_modules_are_refused(save_st, settings, match):
    with pytest.raises(EncoderError, match=match):
        TransformerEncoder(save_st(**settings))


def test_a_damaged_list_of_modules_is_refused(save_st):
    folder = save_st()
    for content in ('{"a": 1}', "[1", '[{"path": ""}]'):
        (folder / "modules.json").write_text(content)
        with pytest.raises(EncoderError, match="is not a complete model of sentence-transformers"):
            TransformerEncoder(folder)


def test_the_model_object_itself_is_an_encoder(st, save_st):
    folder = save_st()
    model = st.SentenceTransformer(str(folder), device="cpu")
    found = encode_texts(model, TEXTS)
    np.testing.assert_allclose(found, TransformerEncoder(folder).encode(TEXTS), atol=1e-5)


def test_pickled_weights_are_refused(roberta, copy):
    (copy / "model.safetensors").unlink()
    model = transformers.AutoModel.from_pretrained(roberta)
    torch.save(model.state_dict(), copy / "pytorch_model.bin")
    with pytest.raises(EncoderError, match="has no safetensors weights, and pickled ones, such as"):
        TransformerEncoder(copy)


def test_a_file_of_weights_named_in_the_config_is_refused(copy):
    edit(copy / "config.json", transformers_weights="adapter_model.bin")
    with pytest.raises(EncoderError, match=r"names a file of weights in its config\.json"):
        TransformerEncoder(copy)


def test_code_of_the_model_is_not_run(copy):
    edit(copy / "config.json", model_type="own", auto_map={"AutoConfig": "own.Config"})
    (copy / "own.py").write_text("raise SystemExit('code was run')")
    with pytest.raises(EncoderError, match="cannot be loaded: "):
        TransformerEncoder(copy)


def test_weights_of_another_model_are_refused(bert, copy):
    shutil.copy(bert / "model.safetensors", copy / "model.safetensors")
    edit(copy / "config.json", num_hidden_layers=3)
    with pytest.raises(EncoderError, match=r"copy (lacks weights of RobertaModel|cannot be load)"):
        TransformerEncoder(copy)


def test_a_missing_layer_is_refused(copy):
    edit(copy / "config.json", num_hidden_layers=3)
    with pytest.raises(EncoderError, match=r"lacks weights of RobertaModel, such as encoder\.lay"):
        TransformerEncoder(copy)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(tmp_path):
    folder = save_encoder(tmp_path, "bert", vocab_size=50)
    last = len(bert_tokenizer()) - 1
    with pytest.raises(EncoderError, match=f"from 0 to {last}, but the model knows only 50"):
        TransformerEncoder(folder)


def test_folders_that_are_no_whole_model_are_refused(copy, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(EncoderError, match=r"empty is not a model: it has no config\.json"):
        TransformerEncoder(tmp_path / "empty")
    (copy / "tokenizer.json").rename(tmp_path / "tokenizer.json")
    with pytest.raises(EncoderError, match="has no tokenizer"):
        TransformerEncoder(copy)
    (tmp_path / "tokenizer.json").rename(copy / "tokenizer.json")
    (copy / "model.safetensors").write_bytes(b"not tensors")
    with pytest.raises(EncoderError, match="cannot be loaded: "):
        TransformerEncoder(copy)
    (copy / "adapter_config.json").write_text("{}")
    with pytest.raises(EncoderError, match="is an adapter; merge it"):
        TransformerEncoder(copy)


def test_models_that_do_more_than_encode_are_refused(tmp_path, roberta):
    tokenizer = transformers.AutoTokenizer.from_pretrained(roberta)
    sizes = {"vocab_size": len(tokenizer), "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1}
    transformers.T5Model(transformers.T5Config(**sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match=r"is a T5Model, of an encoder and a decoder; hf: takes"):
        TransformerEncoder(tmp_path)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"pooling": "max"}, "pooling must be one of mean, cls; got 'max'"),
        ({"max_tokens": 2}, "max_tokens must be at least 3 for .*; got 2"),
        ({"device": "tpu"}, "device must be cpu, cuda, cuda:N or mps; got 'tpu'"),
        ({"device": "cuda:x"}, "device must be cpu, cuda, cuda:N or mps; got 'cuda:x'"),
        ({"device": "cuda:99"}, r"PyTorch finds no device 'cuda:99' here; there are: .*cpu \(1\)"),
        ({"precision": "int4"}, "precision must be one of float32, float16, bfloat16; got 'int4'"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1; got 0"),
    ],
)
def test_bad_settings_are_refused(roberta, settings, match):
    with pytest.raises(EncoderError, match=match):
        TransformerEncoder(roberta, **settings)


def test_no_texts_are_refused(roberta):
    with pytest.raises(EncoderError, match="there are no texts to encode"):
        TransformerEncoder(roberta).encode([])


@pytest.mark.parametrize("name", ["./missing", "one/two/three", "/no/such/folder", "two words"])
def test_impossible_names_are_refused(name):
    with pytest.raises(EncoderError, match=f"'{name}' is neither a folder nor the name of a mod"):
        TransformerEncoder(name)


@pytest.fixture
def masked_model(tmp_path):
    """A folder with a head that is not used, which transformers reports on standard error."""
    folder = save_encoder(tmp_path)
    transformers.AutoModelForMaskedLM.from_pretrained(folder).save_pretrained(folder)
    return folder


@pytest.fixture
def shown(capfd):
    """Returns what transformers has logged and printed since the last call."""
    logger, records = logging.getLogger("transformers"), queue.SimpleQueue()
    handler = QueueHandler(records)
    logger.addHandler(handler)

    def read():
        logged = [records.get().getMessage() for _ in range(records.qsize())]
        return "".join([*logged, *capfd.readouterr()])

    yield read
    logger.removeHandler(handler)


def test_loading_shows_nothing_and_restores_the_settings(masked_model, shown):
    logger, bars = logging.getLogger("transformers.modeling_utils"), transformers.utils.logging
    before = logger.level, list(logger.filters), bars.is_progress_bar_enabled()
    shown()
    TransformerEncoder(masked_model)
    with pytest.raises(EncoderError, match="max_tokens must be at most"):
        TransformerEncoder(masked_model, max_tokens=1000)
    assert shown() == ""
    assert (logger.level, list(logger.filters), bars.is_progress_bar_enabled()) == before
    transformers.AutoModel.from_pretrained(masked_model)
    assert "UNEXPECTED" in (after := shown())
    assert "Loading weights" in after


def test_messages_of_other_threads_are_shown(masked_model, shown):
    shown()
    with quiet():
        transformers.AutoModel.from_pretrained(masked_model)
        assert shown() == ""
        other = threading.Thread(target=transformers.AutoModel.from_pretrained, args=[masked_model])
        other.start()
        other.join()
        assert "UNEXPECTED" in (of_other := shown())
        assert "Loading weights" in of_other


def test_a_model_for_training_gets_a_new_head_and_can_be_saved(roberta, tmp_path):
    with pytest.raises(EncoderError, match=r"lacks weights of RobertaForSequence"):
        Pretrained(roberta, "roberta", head=SINGLE)
    trained = Pretrained(roberta, "roberta", head=SINGLE, new_outputs=1, device="cpu")
    inputs = trained.inputs(trained.tokenizer.encode_batch_fast([("a", "long text"), ("b", "x")]))
    expected = trained.model(**inputs).logits.detach()
    assert expected.shape == (2, 1)
    trained.save(tmp_path / "saved")
    again = Pretrained(tmp_path / "saved", "saved", head=SINGLE, device="cpu")
    np.testing.assert_allclose(again.model(**inputs).logits.detach(), expected, atol=1e-5)
    assert Pretrained(roberta, "roberta", head=DUAL, new_outputs=1).fingerprint


def test_batches_hold_every_text_once_and_no_more_tokens_than_allowed():
    lengths = [5, 1, 9, 9, 2, 40, 3, 5]
    batches = list(batches_by_length(lengths, 20))
    assert sorted(np.concatenate(batches)) == list(range(8))
    assert [[lengths[place] for place in batch] for batch in batches] == [
        [1, 2, 3, 5],
        [5, 9],
        [9],
        [40],
    ]
    assert list(batches_by_length([], 20)) == []


def test_models_of_the_hub_are_fetched_once_and_errors_are_sentences(copy, tmp_path):
    (copy / "pytorch_model.bin").write_bytes(b"never fetched")
    with HubServer(copy) as hub:
        address = f"http://127.0.0.1:{hub.server_port}"
        code = f"""
import urllib.request
from ulr.encoders.transformer import TransformerEncoder

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
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=os.environ
            | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "0"},
            timeout=120,
        )
    fetched, unknown, gated, again, unreachable = run.stdout.splitlines()
    assert fetched == again == f"hf:org/tiny {TransformerEncoder(copy).fingerprint}"
    assert unknown.startswith("EncoderError 'org/unknown' is neither a folder nor a public model")
    assert gated.startswith("EncoderError the model 'org/gated' requires consent")
    assert unreachable.startswith("EncoderError 'org/other' is not a folder, and the Hugging Face")
    assert run.stderr == ""
    assert not list((tmp_path / "cache").rglob("*.bin"))


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_without_its_packages_it_says_how_to_install_them(roberta, package):
    code = (
        f"import sys; sys.modules['{package}'] = None\n"
        "from ulr.encoders.transformer import TransformerEncoder\n"
        f"try:\n    TransformerEncoder({str(roberta)!r})\n"
        "except Exception as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        run.stdout
        == f"'{package}' is not installed; install it with: {install_command('torch')}.\n"
    )


def test_importing_it_imports_no_torch():
    code = (
        "import sys; import ulr.encoders.transformer, ulr.encoders.cross; "
        "print({'torch', 'transformers', 'huggingface_hub'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
