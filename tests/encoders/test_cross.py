"""The single encoder: scores of transformers, pairs of the tokenizer, heads by their names."""

import functools
import pickle
import shutil

import numpy as np
import pytest
from scipy.special import softmax
from tiny import TEXTS, roberta_tokenizer, save_encoder, save_scorer, torch, transformers

from ulr.encoders import Encoder, encode_texts
from ulr.encoders.cross import CrossEncoder, LabelScores, PairScorer
from ulr.errors import EncoderError

LABELS = ["rain", "the bank and its rate", "goals", ""]
NLI = ["contradiction", "neutral", "ENTAILMENT"]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def folder(request, tmp_path_factory):
    """A scorer with one output."""
    return save_scorer(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def scorer(folder):
    return CrossEncoder(folder, max_tokens=24)


@pytest.fixture(scope="module")
def bert_scorer(tmp_path_factory):
    return CrossEncoder(save_scorer(tmp_path_factory.mktemp("scorer"), "bert"), max_tokens=24)


@pytest.fixture
def copy(folder, tmp_path):
    """A folder to spoil."""
    return shutil.copytree(folder, tmp_path / "copy")


@functools.cache
def load(folder):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    return transformers.AutoTokenizer.from_pretrained(folder), model


def logits(folder, first, second, truncation="only_second", max_tokens=24):
    """Outputs for one pair by transformers alone, (n_outputs,)."""
    tokenizer, model = load(folder)
    given = tokenizer(
        [first], [second], truncation=truncation, max_length=max_tokens, return_tensors="pt"
    )
    with torch.no_grad():
        return model(**given).logits[0].numpy()


def test_scores_are_the_output_of_the_head_for_label_then_text(folder, scorer):
    scores = scorer.score(TEXTS, LABELS)
    assert scores.dtype == np.float32
    assert scores.shape == (len(TEXTS), len(LABELS))
    for i, text in enumerate(TEXTS):
        for j, label in enumerate(LABELS):
            np.testing.assert_allclose(scores[i, j], logits(folder, label, text)[0], atol=1e-5)
    assert scores.std(axis=1).min() > 0.01


def test_pairs_are_those_of_the_tokenizer(folder, scorer):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    first = [label for _ in TEXTS for label in LABELS]
    second = [text for text in TEXTS for _ in LABELS]
    own = tokenizer(first, second, truncation="only_second", max_length=24)
    found = scorer._encoded(second, first)
    assert [each.ids for each in found] == own["input_ids"]
    if "token_type_ids" in own:
        assert [each.type_ids for each in found] == own["token_type_ids"]
        assert {1} <= set(found[0].type_ids)


def test_scores_do_not_depend_on_order_and_batches(folder, scorer):
    together = scorer.score(TEXTS, LABELS)
    alone = np.concatenate([scorer.score([text], LABELS) for text in TEXTS])
    backwards = scorer.score(TEXTS[::-1], LABELS[::-1])[::-1, ::-1]
    small = CrossEncoder(folder, max_tokens=24, batch_tokens=30).score(TEXTS, LABELS)
    for other in (alone, backwards, small):
        np.testing.assert_allclose(together, other, atol=1e-5)


def test_more_pairs_than_a_batch_keep_their_places(bert_scorer):
    scorer = bert_scorer
    texts = [f"t{i}" for i in range(65)]
    labels = [f"l{i}" for i in range(64)]
    scores = scorer.score(texts, labels)
    for i, j in [(0, 0), (63, 63), (64, 0), (64, 63)]:
        np.testing.assert_allclose(
            scores[i, j], scorer.score([texts[i]], [labels[j]])[0, 0], atol=1e-5
        )


def test_only_the_text_is_truncated_and_counted_once(folder):
    scorer = CrossEncoder(folder, max_tokens=24)
    long = "rain again in the north " * 9
    scores = scorer.score([long, "x", long + "!"], ["rain", "the bank and its rate"])
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-5)
    assert scorer.truncated == 2
    scorer.score([long], ["rain"])
    assert scorer.truncated == 3


def test_a_label_that_leaves_no_tokens_to_the_text_is_refused(scorer):
    label = "the harbour froze over and the ferries stayed at the quay " * 3
    with pytest.raises(
        EncoderError, match=r"label 'the harbour .*…' takes .* of the 24 tokens of a"
    ):
        scorer.score(["x"], ["rain", label])


def test_two_outputs_are_one_against_the_other(tmp_path):
    folder = save_scorer(tmp_path / "plain", n_outputs=2)
    out = logits(folder, "rain", TEXTS[0])
    found = CrossEncoder(folder, max_tokens=24).score(TEXTS[:1], ["rain"])
    np.testing.assert_allclose(found, [[out[1] - out[0]]], atol=1e-5)
    folder = save_scorer(tmp_path / "named", names=["Positive", "Negative"])
    found = CrossEncoder(folder, max_tokens=24).score(TEXTS[:1], ["rain"])
    np.testing.assert_allclose(found, [[out[0] - out[1]]], atol=1e-5)


def test_two_outputs_of_entailment_read_the_text_first(tmp_path):
    folder = save_scorer(tmp_path, names=["entailment", "not_entailment"])
    scores = CrossEncoder(folder, max_tokens=24).score(TEXTS, ["rain"])
    for text, score in zip(TEXTS, scores[:, 0], strict=True):
        out = logits(folder, text, "rain", "only_first")
        np.testing.assert_allclose(score, out[0] - out[1], atol=1e-5)


@pytest.mark.parametrize("names", [NLI, NLI[::-1]])
def test_three_outputs_are_scored_by_the_one_named_entailment(tmp_path, names):
    folder = save_scorer(tmp_path, "roberta", names=names)
    scores = CrossEncoder(folder, max_tokens=24).score(TEXTS, LABELS)
    for i, text in enumerate(TEXTS):
        for j, label in enumerate(LABELS):
            out = logits(folder, text, label, "only_first")
            np.testing.assert_allclose(scores[i, j], out[names.index("ENTAILMENT")], atol=1e-5)


def test_a_head_on_an_encoder_with_a_decoder_works(tmp_path):
    tokenizer = roberta_tokenizer()
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 64}
    sizes |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "init_std": 0.3}
    special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = transformers.BartConfig(
        vocab_size=len(tokenizer),
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        id2label=dict(enumerate(NLI)),
        label2id={name: number for number, name in enumerate(NLI)},
        **sizes,
        **special,
    )
    transformers.BartForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    scores = CrossEncoder(tmp_path, max_tokens=24).score(TEXTS, ["rain"])
    for text, score in zip(TEXTS, scores[:, 0], strict=True):
        np.testing.assert_allclose(
            score, logits(tmp_path, text, "rain", "only_first")[2], atol=1e-5
        )


@pytest.mark.parametrize(
    ("n_outputs", "names", "match"),
    [
        (3, None, r"has 3 outputs \(label_0, label_1, label_2\); a score needs one output, two"),
        (None, ["a", "b", "c", "entailment"], r"has 4 outputs \(a, b, c, entailment\)"),
    ],
)
def test_heads_that_give_no_score_are_refused(tmp_path, n_outputs, names, match):
    folder = save_scorer(tmp_path, n_outputs=n_outputs, names=names)
    with pytest.raises(EncoderError, match=match):
        CrossEncoder(folder, max_tokens=24)


def test_a_model_without_a_head_is_refused(tmp_path):
    with pytest.raises(
        EncoderError, match=r"lacks weights of RobertaForSequ.*, such as classifier"
    ):
        CrossEncoder(save_encoder(tmp_path), max_tokens=24)


def test_pickled_weights_are_refused(folder, copy):
    (copy / "model.safetensors").unlink()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    torch.save(model.state_dict(), copy / "pytorch_model.bin")
    with pytest.raises(EncoderError, match="has no safetensors weights, and pickled ones, such as"):
        CrossEncoder(copy, max_tokens=24)


def test_bad_settings_are_refused(folder, scorer):
    with pytest.raises(EncoderError, match=r"max_tokens must be at most 64 for .*; got 128"):
        CrossEncoder(folder)
    with pytest.raises(EncoderError, match=r"max_tokens must be at least [45] for .*; got 3"):
        CrossEncoder(folder, max_tokens=3)
    with pytest.raises(EncoderError, match="there are no texts to score"):
        scorer.score([], ["rain"])
    with pytest.raises(EncoderError, match="there are no labels to score"):
        scorer.score(["rain"], [])


def test_lower_casing_and_half_characters(folder, scorer):
    lower = CrossEncoder(folder, max_tokens=24, lowercase=True)
    expected = scorer.score(["rain in the north"], ["the bank"])
    np.testing.assert_allclose(
        lower.score(["RAIN in the North"], ["THE Bank"]), expected, atol=1e-6
    )
    found = scorer.score(["cut \ud83d off"], ["cut \ud83d"])
    np.testing.assert_allclose(found, scorer.score(["cut \ufffd off"], ["cut \ufffd"]), atol=1e-6)


def test_loading_prints_nothing(folder, capfd):
    capfd.readouterr()
    CrossEncoder(folder, max_tokens=24)
    assert capfd.readouterr() == ("", "")


def test_fingerprint_pickle_and_spec_tell_the_settings(folder, scorer, tmp_path):
    lower = CrossEncoder(folder, max_tokens=24, lowercase=True)
    other = CrossEncoder(save_scorer(tmp_path / "other", seed=1), max_tokens=24)
    shorter = CrossEncoder(folder, max_tokens=20)
    assert len({each.fingerprint for each in (scorer, lower, other, shorter)}) == 4
    assert scorer.spec is None
    packed = pickle.dumps(lower)
    again = pickle.loads(packed)
    assert len(packed) < 1000
    assert again.fingerprint == lower.fingerprint
    np.testing.assert_array_equal(again.score(TEXTS, LABELS), lower.score(TEXTS, LABELS))


def test_spec_makes_it_again_where_the_settings_are_the_usual_ones(tmp_path):
    folder = save_scorer(tmp_path, "roberta", max_position_embeddings=514)
    assert CrossEncoder(folder).spec == f"cross:{folder}"


def test_a_scorer_is_no_encoder_of_texts(scorer):
    assert isinstance(scorer, PairScorer)
    assert not isinstance(scorer, Encoder)


class Overlap:
    """Scores by the letters that text and label share."""

    def score(self, texts, labels, /):
        return np.array([[float(len(set(t) & set(c))) for c in labels] for t in texts])


def test_label_scores_are_a_softmax_over_means_of_phrases():
    phrases = [["ab", "xyz"], ["a"], ["ab"]]
    vectors = LabelScores(Overlap(), phrases).encode(["abc", "xyz a", ""])
    expected = softmax([[1, 1, 2], [2, 1, 1], [0, 0, 0]], axis=1)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)


def test_label_scores_of_a_model_are_an_encoder(folder):
    scorer = CrossEncoder(folder, max_tokens=24)
    labels = LabelScores(scorer, [["rain", "snow"], ["goals"]])
    assert isinstance(labels, Encoder)
    vectors = encode_texts(labels, TEXTS * 9)
    assert vectors.shape == (len(TEXTS) * 9, labels.n_dims) == (len(TEXTS) * 9, 2)
    np.testing.assert_allclose(vectors.sum(axis=1), 1, atol=1e-6)
    scores = scorer.score(TEXTS, ["rain", "snow", "goals"])
    means = np.stack([scores[:, :2].mean(axis=1), scores[:, 2]], axis=1)
    np.testing.assert_allclose(vectors[: len(TEXTS)], softmax(means, axis=1), atol=1e-5)
    assert labels.truncated == scorer.truncated > 0
    assert labels.batch_texts == scorer.batch_texts == 32


def test_label_scores_have_the_fingerprint_of_scorer_and_phrases(scorer):
    sets = [[["a"], ["b"]], [["b"], ["a"]], [["a", "b"]], [["a"], ["b", "b"]]]
    fingerprints = {LabelScores(scorer, phrases).fingerprint for phrases in sets}
    assert len(fingerprints) == 4
    assert all(each.startswith(scorer.fingerprint) for each in fingerprints)
    assert LabelScores(Overlap(), [["a"]]).fingerprint.startswith("test_cross.Overlap, labels ")


def test_label_scores_refuse_empty_labels_and_wrong_shapes():
    for phrases in ([], [["a"], []]):
        with pytest.raises(EncoderError, match="needs at least one label, and at least one phrase"):
            LabelScores(Overlap(), phrases)

    class Flat:
        def score(self, texts, labels, /):
            return np.zeros(len(texts))

    with pytest.raises(
        EncoderError, match=r"Flat\.score must return float scores of shape \(2, 1\)"
    ):
        LabelScores(Flat(), [["a"]]).encode(["x", "y"])
