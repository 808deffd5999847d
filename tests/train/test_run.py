"""Training runs of a two-layer RoBERTa: learning, resumption, saved encoders."""

import json
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import sentence_transformers
import torch
import transformers
from sentence_transformers.sentence_transformer.modules import Normalize

import ulr.train
from ulr.encoders import load_encoder
from ulr.errors import InputError, TrainingError
from ulr.train import PairSource, TrainingSettings, train
from ulr.train.instances import Instance
from ulr.train.trainer import RankingAccuracy, load_model, loss_of

OBJECTIVES = ["dot", "l2", "single"]
QUICK = {"n_instances": 320, "batch_size": 16, "n_jobs": 1, "n_held_out": 40, "max_tokens": 32}


def quick(objective="dot", **more):
    return TrainingSettings(objective, **QUICK | more)


def source(natcat):
    return [PairSource((str(natcat),), kind="natcat")]


def losses(report):
    return [(line["step"], line["loss"]) for line in report.log if "loss" in line]


class Stop:
    """Progress that ends a run after some instances."""

    def __init__(self, after, action=None):
        self.left, self.action = after, action

    def stage(self, name, total=None, unit="documents"):
        pass

    def advance(self, count=1):
        self.left -= count
        if self.left <= 0:
            if self.action is None:
                raise KeyboardInterrupt
            self.action()


@pytest.fixture(scope="module")
def trained(roberta, natcat, telling, tmp_path_factory):
    """One folder an objective, trained at a rate at which so small a model learns quickly."""
    folder = tmp_path_factory.mktemp("trained")
    how = {
        "dot": (natcat, {"n_instances": 960, "learning_rate": 2e-3}),
        "l2": (natcat, {}),
        "single": (telling, {"n_instances": 640, "batch_size": 8}),
    }
    reports = {
        objective: train(
            roberta,
            source(pairs),
            folder / objective,
            quick(objective, **{"learning_rate": 3e-3} | more),
        )
        for objective, (pairs, more) in how.items()
    }
    return folder, reports


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_loss_falls_and_the_best_ranking_accuracy_is_kept(trained, objective):
    report = trained[1][objective]
    steps = [loss for _, loss in losses(report)]
    assert np.mean(steps[-5:]) < 0.5 * np.mean(steps[:5])
    assert report.accuracy > report.accuracy_before + 0.2
    validated = {x["step"]: x["eval_ranking_accuracy"] for x in report.log if "eval_runtime" in x}
    assert report.accuracy_before == validated.pop(0)
    assert report.accuracy == max(validated.values()) == validated[report.best_step]


def test_the_learning_rate_rises_for_a_tenth_of_the_steps_and_falls_to_zero(trained):
    rates = [line["learning_rate"] for line in trained[1]["l2"].log if "loss" in line]
    expected = [0.0, 1.5e-3, *(3e-3 * (20 - step) / 18 for step in range(2, 20))]
    assert rates == pytest.approx(expected)


def test_folders_load_as_encoders_and_with_sentence_transformers_alone(trained, words):
    folder = trained[0]
    texts, names = [words.sentence(each, 1, 2) for each in words.of], list(words.of)
    for objective, prefix in (("dot", "hf"), ("single", "cross")):
        encoder = load_encoder(f"{prefix}:{folder / objective}")
        if objective == "dot":
            found = encoder.encode(texts)
            model = sentence_transformers.SentenceTransformer(str(folder / objective), device="cpu")
            expected = model.encode(texts)
        else:
            found = encoder.score(texts, names)
            model = sentence_transformers.CrossEncoder(str(folder / objective), device="cpu")
            pairs = [(name, text) for text in texts for name in names]
            scores = model.predict(pairs, activation_fn=torch.nn.Identity())
            expected = scores.reshape(len(texts), -1)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert model.max_seq_length == 32


def test_the_folder_contains_a_model_card_and_the_report_but_no_texts(trained, natcat):
    folder = trained[0] / "l2"
    card = (folder / "README.md").read_text()
    assert "tiny.train.data" in card
    assert "HingeLoss" in card
    assert '"margin": 0.5' in card
    assert "Ranking accuracy among 8 categories" in card
    assert "ulr classify FILE --labels LABELS --encoder hf:l2 --distance l2" in card
    assert str(folder) not in card
    assert not any(line.split("\t")[-1] in card for line in natcat.read_text().splitlines())
    content = json.loads((folder / "training.json").read_text())
    assert content["plan"]["n_instances"] == 320
    assert content["output"] == "l2"
    assert not (folder.parent / "l2.training").exists()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_resumed_run_is_identical_to_an_uninterrupted_one(roberta, natcat, tmp_path, objective):
    settings = quick(objective, n_instances=160, checkpoint_every=3)
    whole = train(roberta, source(natcat), tmp_path / "whole", settings)
    with pytest.raises(KeyboardInterrupt):
        train(roberta, source(natcat), tmp_path / "parts", settings, progress=Stop(8 * 16))
    assert not (tmp_path / "parts").exists()
    torch.rand(7)  # the state of the random numbers comes out of the checkpoint
    lines = []
    options = {"resume": True, "log": lines.append}
    parts = train(roberta, source(natcat), tmp_path / "parts", settings, **options)
    assert [line.split(":")[0] for line in lines[1:]] == ["step 9 of 10", "step 10 of 10"]
    assert losses(parts) == losses(whole)
    assert (parts.accuracy_before, parts.accuracy) == (whole.accuracy_before, whole.accuracy)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_a_killed_process_resumes_where_it_died(roberta, natcat, tmp_path):
    settings = quick(n_held_out=20, checkpoint_every=2)
    whole = train(roberta, source(natcat), tmp_path / "whole", settings)
    program = (
        "from ulr.train import *\n"
        f"pairs = PairSource(({str(natcat)!r},), kind='natcat')\n"
        f"train({str(roberta)!r}, [pairs], {str(tmp_path / 'killed')!r}, {settings!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    work, until = tmp_path / "killed.training", time.monotonic() + 600
    while not list(work.glob("checkpoint-*/trainer_state.json")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed").exists()
    with pytest.raises(TrainingError, match="holds an unfinished run; continue it with --resume"):
        train(roberta, source(natcat), tmp_path / "killed", settings)
    # killed while it wrote a checkpoint: the one before it is used
    (work / "checkpoint-18").mkdir()
    (work / "checkpoint-18" / "model.safetensors").write_bytes(b"")
    steps = []
    killed = train(
        roberta, source(natcat), tmp_path / "killed", settings, resume=True, log=steps.append
    )
    assert losses(killed) == losses(whole)
    assert len(steps) < 1 + 11  # it did not begin again
    assert killed.seconds > 0
    assert not work.exists()


def test_a_run_is_not_resumed_with_other_settings_or_pairs(roberta, natcat, tmp_path):
    settings = quick(n_instances=64, checkpoint_every=1)
    with pytest.raises(KeyboardInterrupt):
        train(roberta, source(natcat), tmp_path / "out", settings, progress=Stop(16))
    other = replace(settings, learning_rate=1e-3)
    with pytest.raises(TrainingError, match="a run with other learning_rate; resume it with the"):
        train(roberta, source(natcat), tmp_path / "out", other, resume=True)
    fewer = tmp_path / "fewer.data"
    fewer.write_text("\n".join(natcat.read_text().splitlines()[:300]))
    with pytest.raises(TrainingError, match="is a run with other pairs"):
        train(roberta, source(fewer), tmp_path / "out", settings, resume=True)
    (tmp_path / "out").mkdir()
    train(roberta, source(natcat), tmp_path / "out", other, force=True)
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_a_full_disk_leaves_the_last_checkpoint_intact(roberta, natcat, tmp_path):
    """A limit on the size of files stands in for a full disk: the system refuses to write."""
    settings = quick(n_instances=64, n_held_out=0, checkpoint_every=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = Stop(32, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard)))
    try:
        with pytest.raises(TrainingError, match=r"out.training cannot be written: .* --resume"):
            train(roberta, source(natcat), tmp_path / "out", settings, progress=limit)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "out.training" / "checkpoint-1" / "trainer_state.json").is_file()
    report = train(roberta, source(natcat), tmp_path / "out", settings, resume=True)
    assert [step for step, _ in losses(report)] == [1, 2, 3, 4]


def test_a_damaged_checkpoint_is_refused(roberta, natcat, tmp_path):
    settings = quick(n_instances=64, checkpoint_every=1, n_held_out=0)
    with pytest.raises(KeyboardInterrupt):
        train(roberta, source(natcat), tmp_path / "out", settings, progress=Stop(32))
    (tmp_path / "out.training" / "checkpoint-1" / "optimizer.pt").write_bytes(b"no")
    with pytest.raises(TrainingError, match=r"checkpoint-1 cannot be read: .* --force"):
        train(roberta, source(natcat), tmp_path / "out", settings, resume=True)


@pytest.mark.parametrize(
    ("base", "settings", "message"),
    [
        ("empty", {}, r"is not a model: it has no config\.json"),
        ("no/such/base", {}, "neither a folder nor"),
        (None, {"max_tokens": 200}, "max_tokens must be at most 128 for"),
    ],
)
def test_an_unsuitable_base_is_refused(roberta, natcat, tmp_path, base, settings, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=message):
        train(
            tmp_path / base if base else roberta,
            source(natcat),
            tmp_path / "out",
            quick(**settings),
        )
    assert not (tmp_path / "out.training").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"batch_size": 9, "parts": 2}, "batch_size must be a multiple of parts; got 9 and 2"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(TrainingError, match=message):
        TrainingSettings(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trainer_arguments": {"no_such_argument": 1}}, "refuses its arguments: .*no_such_arg"),
        (
            {"learning_rate": 1e38, "trainer_arguments": {"warmup_steps": 0}},
            "the loss of step 2 is .* with a learning rate below 1e",
        ),
    ],
)
def test_a_run_that_cannot_go_on_is_ended(roberta, natcat, tmp_path, settings, message):
    with pytest.raises(TrainingError, match=message):
        train(roberta, source(natcat), tmp_path / "out", quick(**settings))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_batch_in_parts_has_the_loss_and_the_gradient_of_the_whole(
    roberta, natcat, tmp_path, objective
):
    folder = tmp_path / "base"  # dropout would differ
    model = transformers.AutoModel.from_pretrained(roberta)
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = 0.0
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(roberta).save_pretrained(folder)
    settings = quick(objective, n_instances=32, n_held_out=0)
    reports = [
        train(folder, source(natcat), tmp_path / str(parts), replace(settings, parts=parts))
        for parts in (1, 4)
    ]
    for key in ("loss", "grad_norm"):
        whole, parts = ([x[key] for x in each.log if "loss" in x] for each in reports)
        assert parts == pytest.approx(whole, rel=1e-4)


def test_a_base_with_unit_vectors_and_prompts_is_trained_without_both(roberta, tmp_path):
    model = sentence_transformers.SentenceTransformer(str(roberta), device="cpu")
    model.append(Normalize())
    model.prompts = {"query": "find: ", "document": "text: "}
    model.save_pretrained(str(tmp_path / "unit"))
    base = load_model(tmp_path / "unit", quick())
    assert [type(module).__name__ for module in base] == ["Transformer", "Pooling"]
    assert not any(base.prompts.values())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_ties_are_not_right_and_missing_negatives_are_not_ranked(roberta, objective):
    model = load_model(roberta, quick(objective))
    for weights in model.parameters():
        weights.data.zero_()  # all scores are equal
    held_out = [Instance("rook", ["chess", "chess"]), Instance("rook", ["chess"])]
    evaluator = RankingAccuracy(held_out, loss_of(model, quick(objective)))
    assert evaluator(model) == {"ranking_accuracy": 0.5}


def test_the_state_of_the_process_is_restored(roberta, natcat, tmp_path):
    def state():
        seeded = (random.random(), np.random.rand(), torch.rand(1).item())  # noqa: NPY002
        return *seeded, torch.get_num_threads(), transformers.logging.get_verbosity()

    def seed():
        random.seed(3), np.random.seed(3), torch.manual_seed(3)  # noqa: NPY002

    seed()
    expected = state()
    seed()
    train(roberta, source(natcat), tmp_path / "out", quick(n_instances=32, n_held_out=0))
    assert state() == expected


@pytest.mark.parametrize("package", ["torch", "sentence_transformers", "datasets", "accelerate"])
def test_a_missing_package_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TrainingError, match=rf"'{package}' is not installed; .*\[train\]"):
        ulr.train.train  # noqa: B018
