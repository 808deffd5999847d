"""Training runs of a two-layer RoBERTa: learning, resumption, saved encoders."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from ulr import DatalessClassifier
from ulr.cli.train_console import print_report
from ulr.encoders import load_encoder
from ulr.errors import EncoderError, InputError, TrainingError
from ulr.train import PairSource, TrainingSettings, estimate, train
from ulr.train.checkpoints import check_disk_space, read_log
from ulr.train.instances import Instance, TrainingBatch
from ulr.train.loop import Trainer, count_first
from ulr.train.models import DualEncoder, SingleEncoder
from ulr.train.run import prepared

OBJECTIVES = ["dot", "l2", "single"]
QUICK = {"n_instances": 320, "batch_size": 16, "n_jobs": 1, "n_held_out": 40, "max_tokens": 32}


def quick(objective="dot", **more):
    return TrainingSettings(objective, **QUICK | more)


def source(natcat):
    return [PairSource((str(natcat),), kind="natcat")]


def losses(log):
    return [(line["step"], line["loss"], line["rate"]) for line in read_log(log) if "loss" in line]


@pytest.fixture(scope="module")
def trained(roberta, natcat, telling, tmp_path_factory):
    """One folder an objective, trained at a rate at which so small a model learns quickly."""
    folder = tmp_path_factory.mktemp("trained")
    pairs = {"dot": natcat, "l2": natcat, "single": telling}
    more = {
        "dot": {"n_instances": 960, "learning_rate": 2e-3},
        "l2": {},
        "single": {"n_instances": 640, "batch_size": 8, "validate_every": 80},
    }
    reports = {
        objective: train(
            roberta,
            source(pairs[objective]),
            folder / objective,
            quick(objective, **{"learning_rate": 3e-3} | more[objective]),
        )
        for objective in OBJECTIVES
    }
    return folder, reports


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_loss_falls_and_the_ranking_accuracy_rises(trained, objective):
    folder, reports = trained
    steps = [loss for _, loss, _ in losses(folder / objective / "training_log.jsonl")]
    assert np.mean(steps[-5:]) < 0.5 * np.mean(steps[:5])
    assert reports[objective].accuracy > reports[objective].accuracy_before + 0.2


def test_the_best_weights_are_saved(trained):
    folder, reports = trained
    for objective in OBJECTIVES:
        lines = read_log(folder / objective / "training_log.jsonl")
        after = [
            x["validation_accuracy"] for x in lines if x.get("validation_accuracy", 0) and x["step"]
        ]
        assert reports[objective].accuracy == max(after)


def test_the_saved_dual_encoder_gives_the_vectors_of_training(trained, words):
    folder = trained[0] / "dot"
    texts = [words.sentence("chess", 1), "rook", "wool needle " * 9]
    learner = DualEncoder(folder, max_tokens=128)
    learner.model.eval()
    with torch.inference_mode():
        expected = learner.vectors(texts).numpy()
    np.testing.assert_allclose(load_encoder(f"hf:{folder}").encode(texts), expected, atol=1e-5)


def test_the_saved_single_encoder_gives_the_scores_of_training(trained, words):
    folder = trained[0] / "single"
    text = words.sentence("chess", 1)
    learner = SingleEncoder(folder, max_tokens=128)
    learner.model.eval()
    with torch.inference_mode():
        expected = learner.compare(TrainingBatch.of([Instance(text, ("chess", "baking"))])).numpy()
    scored = load_encoder(f"cross:{folder}").score([text], ["chess", "baking"])
    np.testing.assert_allclose(scored, expected, atol=1e-5)


def test_saved_folders_load_with_transformers_alone(trained):
    folder = trained[0]
    for name, head in (("dot", "AutoModel"), ("single", "AutoModelForSequenceClassification")):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / name)
        model, info = getattr(transformers, head).from_pretrained(
            folder / name, output_loading_info=True
        )
        assert all(key.startswith("pooler.") for key in info["missing_keys"])  # not used
        assert not info["unexpected_keys"]
        long = tokenizer("rook " * 50, "bishop")
        assert len(long["input_ids"]) > 50  # the tokenizer is saved as it was, without a limit
        assert model.config.num_labels == 1 or head == "AutoModel"


def test_the_report_warns_if_the_accuracy_fell(trained, capsys):
    report = trained[1]["dot"]
    print_report(report)
    assert "below the base" not in capsys.readouterr().out
    print_report(replace(report, accuracy=report.accuracy_before / 2))
    assert "below the base: train on more instances" in capsys.readouterr().out


@pytest.mark.parametrize("objective", ["dot", "l2"])
def test_a_trained_dual_encoder_classifies_what_it_learnt(trained, words, objective):
    names = list(words.of)[:5]
    texts = [words.sentence(name, f"new {i}") for name in names for i in range(8)]
    classifier = DatalessClassifier(
        names,
        encoder=f"hf:{trained[0] / objective}",
        method="none",
        distance={"dot": "cosine", "l2": "l2"}[objective],
    )
    right = classifier.fit(texts).predict(texts) == np.repeat(names, 8)
    assert right.mean() > 0.5  # one in five by chance


def test_a_trained_single_encoder_classifies_what_it_learnt(trained, words):
    true, *_, false = words.of
    texts = [words.sentence(true, f"new {i}", 1) for i in range(6)]
    encoder = f"cross:{trained[0] / 'single'}"
    classifier = DatalessClassifier([false, true], encoder=encoder, method="none").fit(texts)
    assert set(classifier.predict(texts)) == {true}


def test_the_folder_contains_a_model_card_a_loss_curve_and_the_settings(trained):
    folder = trained[0] / "l2"
    card = (folder / "README.md").read_text()
    assert "tiny.train.data" in card
    assert "| objective | l2, margin 0.5 |" in card
    assert "ranking accuracy among 8 categories" in card
    assert (folder / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((folder / "training.json").read_text())["n_instances"] == 320
    assert not (folder.parent / "l2.training").exists()
    assert str(folder) not in card


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_resumed_run_is_identical_to_an_uninterrupted_one(roberta, natcat, tmp_path, objective):
    settings = quick(objective, n_instances=160, checkpoint_every=3, validate_every=4)
    train(roberta, source(natcat), tmp_path / "whole", settings)

    class Enough(Exception):
        pass

    def stop(progress):
        if progress.step == 8:
            raise Enough

    with pytest.raises(Enough):
        train(roberta, source(natcat), tmp_path / "parts", settings, on_progress=stop)
    assert not (tmp_path / "parts").exists()
    assert len(losses(tmp_path / "parts.training" / "log.jsonl")) == 8
    torch.rand(7)  # the state of the random numbers comes out of the checkpoint
    train(roberta, source(natcat), tmp_path / "parts", settings, resume=True)

    def content(folder):
        return [
            {key: value for key, value in line.items() if key != "seconds"}
            for line in read_log(folder / "training_log.jsonl")
        ]

    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_a_killed_process_resumes_to_the_same_losses(roberta, natcat, tmp_path):
    options = [
        "--base",
        roberta,
        "--pairs",
        f"natcat:{natcat}",
        "--instances",
        320,
        "--batch-size",
        16,
    ]
    options += ["--n-jobs", 1, "--validation", 20, "--checkpoint-every", 2, "--max-tokens", 32]
    settings = quick(n_instances=320, n_held_out=20, checkpoint_every=2)
    train(roberta, source(natcat), tmp_path / "whole", settings)
    command = [sys.executable, "-m", "ulr", "train", *options, "-o", tmp_path / "killed"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)
    checkpoint = tmp_path / "killed.training" / "checkpoint" / "state.json"
    until = time.monotonic() + 120
    while not checkpoint.is_file() and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed").exists()
    with pytest.raises(TrainingError, match="holds an unfinished run; continue it with --resume"):
        train(roberta, source(natcat), tmp_path / "killed", settings)
    train(roberta, source(natcat), tmp_path / "killed", settings, resume=True)
    logs = [losses(tmp_path / name / "training_log.jsonl") for name in ("whole", "killed")]
    assert logs[0] == logs[1]


def test_a_run_is_not_resumed_with_other_settings_or_pairs(roberta, natcat, tmp_path):
    settings = quick(n_instances=64, checkpoint_every=1)

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(roberta, source(natcat), tmp_path / "out", settings, on_progress=stop)
    other = quick(n_instances=64, checkpoint_every=1, learning_rate=1e-3)
    with pytest.raises(
        TrainingError, match="is a run with other learning_rate; resume it with the same"
    ):
        train(roberta, source(natcat), tmp_path / "out", other, resume=True)
    fewer = tmp_path / "fewer.data"
    fewer.write_text("\n".join(natcat.read_text().splitlines()[:300]))
    with pytest.raises(TrainingError, match="is a run with other pairs"):
        train(roberta, source(fewer), tmp_path / "out", settings, resume=True)


def test_a_full_disk_leaves_the_last_checkpoint_intact(roberta, natcat, tmp_path):
    """A limit on the size of files stands in for a full disk: the system refuses to write."""
    settings = quick(n_instances=64, n_held_out=0, checkpoint_every=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(progress):
        if progress.step == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))

    try:
        with pytest.raises(TrainingError, match=r"checkpoint cannot be written: .* --resume"):
            train(roberta, source(natcat), tmp_path / "out", settings, on_progress=limit)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    state = json.loads((tmp_path / "out.training" / "checkpoint" / "state.json").read_text())
    assert state["step"] == 1
    left = {path.name for path in (tmp_path / "out.training").iterdir()}
    assert left == {"plan.json", "log.jsonl", "checkpoint"}


def test_too_little_disk_space_is_refused(tmp_path):
    with pytest.raises(TrainingError, match=r"checkpoints need 10,000,000,000,000 MB in .* free"):
        check_disk_space(tmp_path, 1e13)


def test_a_damaged_checkpoint_is_refused(roberta, natcat, tmp_path):
    settings = quick(n_instances=64, checkpoint_every=1, n_held_out=0)

    def stop(progress):
        if progress.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(roberta, source(natcat), tmp_path / "out", settings, on_progress=stop)
    (tmp_path / "out.training" / "checkpoint" / "optimizer.safetensors").write_bytes(b"no")
    with pytest.raises(TrainingError, match="is not a complete checkpoint"):
        train(roberta, source(natcat), tmp_path / "out", settings, resume=True)


def test_existing_output_is_replaced_only_with_force(roberta, natcat, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(TrainingError, match=r"already exists; .* --force"):
        train(roberta, source(natcat), tmp_path / "out", quick())
    report = train(
        roberta, source(natcat), tmp_path / "out", quick(n_instances=32, n_held_out=0), force=True
    )
    assert report.accuracy is None
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_a_folder_without_a_model_is_refused(natcat, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(EncoderError, match=r"is not a model: it has no config\.json"):
        train(tmp_path / "empty", source(natcat), tmp_path / "out", quick())
    with pytest.raises(EncoderError, match="neither a folder nor"):
        train(tmp_path / "no/such/base", source(natcat), tmp_path / "out", quick())
    assert not (tmp_path / "out.training").exists()


def test_more_tokens_than_the_base_has_positions_for_are_refused(roberta, natcat, tmp_path):
    with pytest.raises(EncoderError, match="max_tokens must be at most 128 for"):
        train(roberta, source(natcat), tmp_path / "out", quick(max_tokens=200))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "cosine"}, "objective must be one of dot, l2, single; got 'cosine'"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"learning_rate": 0.0}, r"learning_rate must be above 0; got 0\.0"),
        ({"warmup": 1.0}, "warmup must be from 0 to below 1"),
        ({"precision": "int8"}, "precision must be one of float32, float16, bfloat16"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(TrainingError, match=message):
        TrainingSettings(**settings)


def test_a_loss_that_is_not_finite_ends_the_run(roberta, natcat, tmp_path):
    with pytest.raises(TrainingError, match="with a learning rate below 1e"):
        train(roberta, source(natcat), tmp_path / "out", quick(learning_rate=1e38, warmup=0.0))


def gradient_of_a_step(roberta, natcat, settings):
    """The loss of a step without dropout, and the gradient that the update gets."""
    with prepared(roberta, source(natcat), settings) as (learner, pairs, plan):
        for module in learner.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0
        trainer = Trainer(learner, plan)
        seen = []

        def look(*_):
            weights = learner.model.parameters()
            seen.append(torch.cat([w.grad.flatten() for w in weights if w.grad is not None]))

        trainer.optimizer.register_step_pre_hook(look)
        loss = trainer.step(pairs.take(pairs.order(12)), 1e-3)
    return loss, seen[0]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_batch_in_parts_has_the_gradient_of_the_whole(roberta, natcat, objective):
    loss, whole = gradient_of_a_step(roberta, natcat, quick(objective, max_grad_norm=1e9))
    loss_of_parts, parts = gradient_of_a_step(
        roberta, natcat, quick(objective, max_grad_norm=1e9, parts=3)
    )
    assert loss == pytest.approx(loss_of_parts, rel=1e-5)
    torch.testing.assert_close(whole, parts, rtol=1e-3, atol=1e-6)


def test_long_gradients_are_clipped(roberta, natcat):
    _, gradient = gradient_of_a_step(roberta, natcat, quick(max_grad_norm=1e-3))
    assert float(gradient.norm()) == pytest.approx(1e-3, rel=1e-3)


def test_mixed_precision_works_on_the_cpu(roberta, natcat, tmp_path):
    settings = quick(n_instances=64, precision="bfloat16", n_held_out=20)
    report = train(roberta, source(natcat), tmp_path / "out", settings)
    assert report.plan.precision == "bfloat16"
    weights = transformers.AutoModel.from_pretrained(tmp_path / "out")
    assert weights.dtype == torch.float32


def test_ties_do_not_count_as_correct():
    fits = torch.tensor([[1.0, 1.0], [2.0, 1.0], [0.0, 5.0]])
    real = torch.tensor([[True, True], [True, True], [True, False]])
    assert count_first(fits, real) == 2


def test_very_long_categories_and_lone_surrogates_are_scored(roberta):
    odd = [Instance("rook \ud83d", ("chess", "wool " * 200)), Instance("x", ("baking", "chess"))]
    for learner in (DualEncoder(roberta, max_tokens=32), SingleEncoder(roberta, max_tokens=32)):
        assert torch.isfinite(learner.compare(TrainingBatch.of(odd))).all()


def test_threads_and_random_numbers_of_pytorch_are_restored(roberta, natcat, tmp_path):
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    expected = torch.rand(3).tolist()
    torch.manual_seed(3)
    train(roberta, source(natcat), tmp_path / "out", quick(n_instances=32, n_held_out=0))
    assert torch.rand(3).tolist() == expected
    assert torch.get_num_threads() == threads


def test_an_estimate_writes_nothing(roberta, natcat, tmp_path):
    before = sorted(os.listdir(tmp_path))
    plan = estimate(roberta, source(natcat), quick())
    assert plan.seconds > 0
    assert plan.n_steps == 20
    assert plan.n_held_out == 40
    assert plan.sources[0].texts == 360
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("package", "extra"),
    [("torch", "torch"), ("transformers", "torch"), ("matplotlib.figure", "plots")],
)
def test_a_missing_package_is_named_before_anything_is_read(
    roberta, tmp_path, monkeypatch, package, extra
):
    monkeypatch.setitem(sys.modules, package, None)
    name = package.partition(".")[0]
    with pytest.raises(InputError, match=rf"'{name}' is not installed; .*ulr\[{extra}\]"):
        train(roberta, [PairSource(("nowhere",))], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
