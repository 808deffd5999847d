"""The spaCy component gives `doc.cats`, alone, in batches, and after a pipeline was saved."""

import shutil

import pytest

from ulr.classifier import load
from ulr.errors import ModelError

spacy = pytest.importorskip("spacy", reason="install it with: pip install 'ulr[spacy]'")
pytest.importorskip("ulr.integrations.spacy")  # as the entry point of an installation does


@pytest.fixture
def nlp(model):
    nlp = spacy.blank("en")
    nlp.add_pipe("ulr", config={"model": str(model)})
    return nlp


def expected(model, texts):
    fitted = load(model)
    rows = fitted.predict(texts).probabilities.tolist()
    return [dict(zip(fitted.names[:-1].tolist(), row, strict=True)) for row in rows]


def test_categories_are_the_probabilities_of_the_labels(nlp, model, messages):
    (cats,) = expected(model, messages[:1])
    assert nlp(messages[0]).cats == pytest.approx(cats, abs=1e-6)
    assert nlp.get_pipe("ulr").labels == tuple(cats)


def test_batches_give_what_single_documents_give(nlp, model, messages):
    texts = [*messages[:100], ""]
    docs = list(nlp.pipe(texts, batch_size=32))
    assert [doc.text for doc in docs] == texts
    for doc, cats in zip(docs, expected(model, texts), strict=True):
        assert doc.cats == pytest.approx(cats, abs=1e-6)


def test_several_labels_a_text_have_their_chances(several, messages, tmp_path):
    several.save(tmp_path / "model")
    nlp = spacy.blank("en")
    nlp.add_pipe("ulr", config={"model": str(tmp_path / "model")})
    found = [nlp(messages[0]).cats[name] for name in several.classes_]
    assert found == pytest.approx(several.predict_proba(messages[:1])[0].tolist(), abs=1e-6)


def test_a_saved_pipeline_needs_no_other_folder(nlp, model, messages, tmp_path):
    cats = nlp(messages[0]).cats
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(model)
    loaded = spacy.load(tmp_path / "pipeline")
    assert loaded(messages[0]).cats == pytest.approx(cats)
    loaded.to_disk(tmp_path / "pipeline")  # over itself
    assert spacy.load(tmp_path / "pipeline")(messages[0]).cats == pytest.approx(cats)


def test_a_component_without_a_model_says_what_it_needs():
    nlp = spacy.blank("en")
    nlp.add_pipe("ulr")
    with pytest.raises(ModelError, match="config="):
        nlp("text")
