"""What a report shows is what the classifier predicted."""

import base64
import hashlib
import json

import numpy as np
import pytest

from tiny_task import LABELS, PHRASES, CosineScorer, StaticVectors, generated_texts
from ulr import ZeroShotClassifier
from ulr.errors import InputError, LabelError, TextError
from ulr.report import report_sample


def test_every_document_has_its_prediction_and_is_counted(task, report):
    documents = report.data.documents
    predictions = task.classifier.fitted_.predict(task.texts)
    rows = np.array(documents.row) - 1
    assert rows.tolist() == np.flatnonzero(~predictions.empty).tolist()
    assert documents.label == predictions.labels[rows].tolist()
    assert documents.unrefined == predictions.unrefined[rows].tolist()
    assert documents.confidence == predictions.confidence[rows].tolist()
    ranked = np.argsort(-predictions.probabilities[rows], axis=1, kind="stable")
    assert documents.second == ranked[:, 1].tolist()
    assert not report.data.sampled
    assert report.data.labelled == len(rows) == report.data.result.documents - 1
    before, after = zip(*report.data.counts, strict=True)
    assert list(before) == np.bincount(documents.unrefined, minlength=3).tolist()
    assert list(after) == np.bincount(documents.label, minlength=3).tolist()
    moved = np.count_nonzero(np.not_equal(documents.label, documents.unrefined))
    assert report.data.result.moved == moved == sum(n for _, n in report.data.result.histogram)


def test_a_slow_encoder_explains_only_what_it_can_read_in_seconds(task):
    texts = [" ".join(task.texts[i : i + 12]) for i in range(0, 228, 4)]
    report = ZeroShotClassifier(LABELS, encoder=StaticVectors()).fit(texts).report(texts)
    assert 1 <= len(report.data.why) <= 10_000 // (24 * 80)
    assert not report.data.why_all
    assert {each.how for each in report.data.why.values()} == {"left out"}
    fast = ZeroShotClassifier(LABELS, encoder="static").fit(texts).report(texts)
    assert fast.data.why_all
    assert {each.how for each in fast.data.why.values()} == {"exact"}


def test_comparison_has_the_accuracy_of_the_predictions(report):
    comparison, documents = report.data.result.comparison, report.data.documents
    pairs = [(t, p) for t, p in zip(documents.truth, documents.label, strict=True) if t >= 0]
    right = sum(t == p for t, p in pairs)
    assert comparison.documents == len(pairs) == 240
    assert comparison.after.accuracy == pytest.approx(right / 240)
    assert np.trace(comparison.after.confusion) == right
    assert sum(bin.documents for bin in comparison.reliability) == 240
    found = sum(bin.documents * bin.accuracy for bin in comparison.reliability)
    assert found == pytest.approx(right)


def test_representative_and_borderline_documents_have_the_label(report):
    data = report.data
    for i, label in enumerate(data.labels):
        assert 0 < len(label.representative) <= 5
        assert {data.documents.label[row] for row in label.representative + label.borderline} == {i}
        assert 0 <= min(*label.anchor, *label.centroid) <= max(*label.anchor, *label.centroid) <= 1


@pytest.mark.parametrize(
    "options",
    [
        {"method": "none"},
        {"method": "ulr", "distance": "l2"},
        {"none_share": 0.2},
        {"encoder": CosineScorer()},
        {"labels": PHRASES},
    ],
    ids=str,
)
def test_every_kind_of_classifier_has_a_report(options):
    texts, truth = generated_texts(60)
    clf = ZeroShotClassifier(**{"labels": LABELS, "encoder": StaticVectors()} | options).fit(texts)
    report = clf.report(texts, truth=truth)
    assert [label.name for label in report.data.labels] == clf.fitted_.names[:-1].tolist()
    assert sum(after for _, after in report.data.counts) == report.data.labelled == 60
    assert report.data.result.comparison.documents == 60
    assert "True labels" in report.html


def test_a_saved_classifier_has_the_same_report_without_the_fit(task, report, tmp_path):
    again = task.classifier.report(task.texts, truth=task.truth).data
    assert again.documents == report.data.documents
    assert again.labels == report.data.labels
    task.classifier.save(tmp_path / "model")
    loaded = ZeroShotClassifier.load(tmp_path / "model", encoder=StaticVectors())
    data = loaded.report(task.texts).data
    assert data.result.diagnosis is None
    assert data.trace == ()
    assert data.documents.label == report.data.documents.label


def test_names_of_labels_stay_text():
    texts, _ = generated_texts(30)
    labels = {"<b>sports</b>": "sports", "</script>": "business"}
    page = ZeroShotClassifier(labels, encoder=StaticVectors()).fit(texts).report(texts).html
    assert "<b>sports" not in page
    assert "&lt;b&gt;sports&lt;/b&gt;" in page
    assert page.count("</script>") == 2


def part(page, begin, end="</script>"):
    start = page.index(begin) + len(begin)
    return page[start : page.index(end, start)]


def test_data_of_the_page_is_the_data_of_the_report_without_confusion(report, hostile):
    written = part(report.html, 'data-part="data">')
    assert not set("<>&\u2028\u2029") & set(written)
    expected = json.loads(json.dumps(report.data.as_dict()))
    for figures in ("before", "after"):
        del expected["result"]["comparison"][figures]
    assert json.loads(written) == expected
    assert set(hostile) <= set(expected["documents"]["text"])


def test_the_policy_allows_nothing_but_the_own_script_and_style(report):
    policy = part(report.html, 'Security-Policy" content="', '"').replace("&#39;", "'")
    hashes = {
        "script-src": part(report.html, '<script type="module">'),
        "style-src": part(report.html, "<style>", "</style>"),
    }
    for source, content in hashes.items():
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_a_sample_of_a_job_keeps_its_rows_and_the_counts_of_the_job(task):
    fitted, chosen = task.classifier.fitted_, [240, 7, 100]
    result = task.classifier.report(task.texts).data.result
    data = report_sample(
        fitted, [task.texts[row] for row in chosen], chosen, result, title="part"
    ).data
    assert data.documents.row == [row + 1 for row in chosen]
    assert data.sampled
    assert data.result is result
    assert sum(after for _, after in data.counts) == len(task.texts) - 1


def test_a_notebook_shows_the_page_in_a_frame(report):
    shown = report._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" srcdoc="&lt;!doctype html&gt;')
    assert "<script" not in shown


def test_long_texts_are_cut_and_half_characters_replaced(task, tmp_path):
    texts, path = ["striker goal " * 200, "striker \ud83d goal"], tmp_path / "report.html"
    shown = task.classifier.report(texts, path).data.documents.text
    assert len(shown[0]) <= 300
    assert shown[0].endswith("…")
    assert "striker \ufffd goal" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("texts", "truth", "error", "message"),
    [
        (["goal"], ["weather"], LabelError, "'weather'"),
        (["", " "], None, TextError, "no document has a label"),
        (["goal"], None, InputError, "overwrite=True"),
    ],
)
def test_what_cannot_be_reported_is_refused(task, tmp_path, texts, truth, error, message):
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(error, match=message):
        task.classifier.report(texts, path, truth=truth, overwrite=error is not InputError)
    assert path.read_text() == "mine"
