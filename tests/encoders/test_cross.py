"""The single encoder: scores of transformers, pairs of the tokenizer, heads by their names."""

import functools

import numpy as np
import pytest
from scipy.special import softmax
from tiny import TEXTS, roberta_tokenizer, save_encoder, save_scorer, torch, transformers

from ulr.encoders import CrossEncoder, Encoder, LabelScores, PairScorer
from ulr.errors import EncoderError

pytest.importorskip("sentence_transformers", reason="install it with: pip install 'ulr[torch]'")

LABELS = ["rain", "the bank and its rate", "goals", ""]
NLI = ["contradiction", "neutral", "ENTAILMENT"]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def folder(request, tmp_path_factory):
    """A scorer with one output."""
    return save_scorer(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def scorer(folder):
    return CrossEncoder(folder, max_tokens=24)


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
    assert scores.std(axis=1).min() > 0.01
    expected = [[logits(folder, label, text)[0] for label in LABELS] for text in TEXTS]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    backwards = scorer.score(TEXTS[::-1], LABELS[::-1])[::-1, ::-1]
    small = CrossEncoder(folder, max_tokens=24, batch_size=3).score(TEXTS, LABELS)
    for other in (backwards, small):
        np.testing.assert_allclose(other, scores, atol=1e-5)


def test_only_the_text_is_truncated_and_counted_once(folder):
    scorer = CrossEncoder(folder, max_tokens=24)
    long = "rain again in the north " * 9
    scores = scorer.score([long, "x", long + "!"], ["rain", "the bank and its rate"])
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-5)
    assert scorer.truncated == 2
    label = "the harbour froze over and the ferries stayed at the quay " * 3
    with pytest.raises(EncoderError, match=r"'the harbour .*…' takes .* of the 24 tokens of a"):
        scorer.score(["x"], ["rain", label])


@pytest.mark.parametrize(
    ("names", "text_first", "score"),
    [
        (None, False, lambda out: out[1] - out[0]),
        (["Positive", "Negative"], False, lambda out: out[0] - out[1]),
        (["entailment", "not_entailment"], True, lambda out: out[0] - out[1]),
        (NLI, True, lambda out: out[2]),
        (NLI[::-1], True, lambda out: out[0]),
    ],
)
def test_outputs_are_read_by_their_number_and_names(tmp_path, names, text_first, score):
    folder = save_scorer(tmp_path, "roberta", n_outputs=2, names=names)
    scores = CrossEncoder(folder, max_tokens=24).score(TEXTS, LABELS)
    for i, text in enumerate(TEXTS):
        for j, label in enumerate(LABELS):
            pair = (text, label) if text_first else (label, text)
            out = logits(folder, *pair, "only_first" if text_first else "only_second")
            np.testing.assert_allclose(scores[i, j], score(out), atol=1e-5)


def test_a_head_on_an_encoder_with_a_decoder_works(tmp_path):
    tokenizer = roberta_tokenizer()
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 64}
    sizes |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "init_std": 0.3}
    special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    names = {"id2label": dict(enumerate(NLI)), "label2id": {name: i for i, name in enumerate(NLI)}}
    sizes |= {"vocab_size": len(tokenizer), "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    config = transformers.BartConfig(**sizes, **special, **names)
    transformers.BartForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    scores = CrossEncoder(tmp_path, max_tokens=24).score(TEXTS, ["rain"])
    expected = [logits(tmp_path, text, "rain", "only_first")[2] for text in TEXTS]
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-5)


class Overlap:
    """Scores by the letters that text and label share."""

    def score(self, texts, labels, /):
        return np.array([[float(len(set(t) & set(c))) for c in labels] for t in texts])


def test_label_scores_are_a_softmax_over_means_of_phrases_or_log_ratios():
    phrases = [["ab", "xyz"], ["a"], ["ab"]]
    texts, means = ["abc", "xyz a", ""], np.array([[1, 1, 2], [2, 1, 1], [0, 0, 0]])
    vectors = LabelScores(Overlap(), phrases).encode(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, softmax(means, axis=1), rtol=1e-6)
    ratios = LabelScores(Overlap(), phrases, probabilities=False).encode(texts)
    np.testing.assert_allclose(ratios, means - means.mean(axis=1, keepdims=True), atol=1e-6)


def test_label_scores_have_the_fingerprint_of_scorer_and_phrases(scorer):
    sets = [[["a"], ["b"]], [["b"], ["a"]], [["a", "b"]], [["a"], ["b", "b"]]]
    fingerprints = {LabelScores(scorer, phrases).fingerprint for phrases in sets}
    assert len(fingerprints) == 4
    assert all(each.startswith(scorer.fingerprint) for each in fingerprints)
    assert LabelScores(Overlap(), [["a"]]).fingerprint.startswith("test_cross.Overlap, labels ")


def test_the_spec_names_the_folder_unless_a_setting_differs(scorer, tmp_path):
    usual = save_scorer(tmp_path, "roberta", max_position_embeddings=514)
    assert (scorer.spec, CrossEncoder(usual).spec) == (None, f"cross:{usual}")
    assert isinstance(scorer, PairScorer)
    assert not isinstance(scorer, Encoder)


class Flat:
    def score(self, texts, labels, /):
        return np.zeros(len(texts))


def saved(folder, **head):
    return CrossEncoder(save_scorer(folder, **head), max_tokens=24)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda folder: saved(folder, n_outputs=3),
            r"has 3 outputs \(label_0, label_1, label_2\); a score needs one output, two",
        ),
        (
            lambda folder: saved(folder, names=["a", "b", "c", "entailment"]),
            r"has 4 outputs \(a, b, c, entailment\)",
        ),
        (
            lambda folder: CrossEncoder(save_encoder(folder)),
            r"lacks weights of RobertaForSequ.*, such as classif",
        ),
        (
            lambda folder: CrossEncoder(save_scorer(folder)),
            r"max_tokens must be at most 64 for .*; got 128",
        ),
        (
            lambda folder: CrossEncoder(save_scorer(folder), max_tokens=3),
            r"max_tokens must be at least 4 for .*; got 3",
        ),
        (lambda folder: saved(folder).score([], ["rain"]), "there are no texts to score"),
        (lambda folder: saved(folder).score(["rain"], []), "there are no labels to score"),
        (lambda folder: LabelScores(Overlap(), []), "needs at least one label, and at least one"),
        (lambda folder: LabelScores(Overlap(), [["a"], []]), "at least one phrase for each"),
        (
            lambda folder: LabelScores(Flat(), [["a"]]).encode(["x", "y"]),
            r"Flat\.score must .* float scores of shape \(2, 1\)",
        ),
    ],
)
def test_bad_heads_settings_and_scores_are_refused(tmp_path, make, match):
    with pytest.raises(EncoderError, match=match):
        make(tmp_path)
