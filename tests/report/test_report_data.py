"""What a report shows is what the classifier predicted."""

import json

import numpy as np
import pytest

from tiny_task import LABELS, PHRASES, CosineScorer, StaticVectors, generated_texts
from ulr import DatalessClassifier
from ulr.errors import InputError, LabelError
from ulr.report.render import as_json, content_security_policy, render


def test_every_document_has_its_prediction(task, report):
    documents = report.data.documents
    predictions = task.classifier.model_.predict(task.texts)
    rows = np.array(documents.row) - 1
    assert rows.tolist() == np.flatnonzero(~predictions.empty).tolist()
    assert documents.label == predictions.labels[rows].tolist()
    assert documents.unrefined == predictions.unrefined[rows].tolist()
    assert documents.confidence == predictions.confidence[rows].tolist()
    ranked = np.argsort(-predictions.probabilities[rows], axis=1, kind="stable")
    assert documents.second == ranked[:, 1].tolist()
    assert not report.data.sampled


def test_counts_are_consistent(task, report):
    data = report.data
    labelled = len(task.texts) - 1
    assert data.run.documents == len(task.texts)
    assert data.run.without_words == 1
    assert sum(count for _, _, count in data.flows) == labelled
    assert sum(label.before for label in data.labels) == labelled
    assert sum(label.after for label in data.labels) == labelled
    assert sum(bin.stayed + bin.moved for bin in data.histogram) == labelled
    moved = sum(a != b for a, b in zip(data.documents.label, data.documents.unrefined, strict=True))
    assert data.run.moved == moved == sum(bin.moved for bin in data.histogram)
    assert data.run.moved == sum(count for a, b, count in data.flows if a != b)


def test_comparison_has_the_accuracy_of_the_predictions(task, report):
    comparison, documents = report.data.comparison, report.data.documents
    pairs = [(t, p) for t, p in zip(documents.truth, documents.label, strict=True) if t >= 0]
    assert comparison.documents == len(pairs) == 240
    assert comparison.accuracy[1] == pytest.approx(np.mean([t == p for t, p in pairs]))
    assert sum(count for t, p, count in comparison.confusion if t == p) == sum(
        t == p for t, p in pairs
    )
    assert sum(bin.documents for bin in comparison.reliability) == 240
    right = sum(bin.documents * bin.accuracy for bin in comparison.reliability)
    assert right / 240 == pytest.approx(comparison.accuracy[1])


def test_representative_and_borderline_documents_have_the_label(report):
    data = report.data
    for i, label in enumerate(data.labels):
        assert 0 < len(label.representative) <= 5
        assert {data.documents.label[row] for row in label.representative + label.borderline} == {i}
        assert 0 <= min(*label.anchor, *label.centroid) <= max(*label.anchor, *label.centroid) <= 1


def test_long_texts_are_cut():
    texts, _ = generated_texts(30)
    texts[0] = "striker goal " * 200
    clf = DatalessClassifier(LABELS, encoder=StaticVectors()).fit(texts)
    shown = clf.report(texts).data.documents.text[0]
    assert len(shown) <= 300
    assert shown.endswith("…")


def test_the_same_texts_give_the_same_report(task, report):
    again = task.classifier.report(task.texts, truth=task.truth).data
    assert again.documents == report.data.documents
    assert again.labels == report.data.labels


@pytest.mark.parametrize(
    "options",
    [
        {"method": "none"},
        {"method": "ulr", "distance": "l2"},
        {"none_share": 0.2},
        {"encoder": CosineScorer()},
        {"labels": PHRASES, "phrasings": "combinations"},
    ],
    ids=str,
)
def test_every_kind_of_classifier_has_a_report(options):
    texts, truth = generated_texts(60)
    clf = DatalessClassifier(**{"labels": LABELS, "encoder": StaticVectors()} | options).fit(texts)
    report = clf.report(texts, truth=truth)
    assert len(report.data.labels) == len(clf.classes_)
    assert report.data.comparison.documents == 60
    assert "True labels" in report.html


def test_a_saved_classifier_has_a_report(task, tmp_path):
    task.classifier.save(tmp_path / "model")
    loaded = DatalessClassifier.load(tmp_path / "model", encoder=StaticVectors())
    data = loaded.report(task.texts).data
    assert data.diagnosis is None
    assert data.trace == ()
    assert data.documents.label == task.classifier.report(task.texts).data.documents.label


def test_names_of_labels_stay_text():
    texts, _ = generated_texts(30)
    labels = {"<b>sports</b>": "sports", "</script>": "business"}
    page = DatalessClassifier(labels, encoder=StaticVectors()).fit(texts).report(texts).html
    assert "<b>sports" not in page
    assert "&lt;b&gt;sports&lt;/b&gt;" in page
    assert page.count("</script>") == 2


def test_unknown_true_labels_are_refused(task):
    with pytest.raises(LabelError, match="'weather'"):
        task.classifier.report(task.texts, truth=["weather"] * len(task.texts))


def test_json_inside_a_page_has_no_markup_and_stays_the_same():
    value = {"text": "</script><!-- & \u2028\u2029 é 😀"}
    written = as_json(value)
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == value


def test_data_of_the_page_is_the_data_of_the_report(report):
    start = report.html.index('data-part="data">') + len('data-part="data">')
    payload = report.html[start : report.html.index("</script>", start)]
    assert json.loads(payload) == json.loads(json.dumps(report.data.as_dict()))


def test_the_policy_allows_nothing_but_the_own_script_and_style(report):
    page = render(report.data)
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    start = page.index('<script type="module">') + len('<script type="module">')
    script = page[start : page.index("</script>", start)]
    policy = content_security_policy(script, style)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.replace("'", "&#39;") in page
    assert "unsafe" not in policy


def test_a_notebook_shows_the_page_in_a_frame(report):
    shown = report._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" srcdoc="&lt;!doctype html&gt;')
    assert "<script" not in shown


def test_half_of_a_surrogate_pair_can_be_written(tmp_path):
    texts, _ = generated_texts(10)
    clf = DatalessClassifier(LABELS, encoder=StaticVectors()).fit(texts)
    clf.report(["striker \ud83d goal", *texts], tmp_path / "report.html")
    assert "striker ? goal" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_existing_file_is_replaced_only_on_request(task, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(InputError, match="overwrite=True"):
        task.classifier.report(task.texts, path)
    assert path.read_text() == "mine"
    task.classifier.report(task.texts, path, overwrite=True)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
