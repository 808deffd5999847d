"""`ulr predict` as a process: a saved model knows what the classifier knew."""

import json


def test_saved_model_gives_the_labels_that_classify_gave(classified, tmp_path, ulr, read_csv):
    output = tmp_path / "out.csv"
    result = ulr(
        "predict", classified.model, classified.source, "-t", "message", "-o", output, "--json"
    )
    assert (result.code, result.err) == (0, "")
    summary = json.loads(result.out)
    before, after = read_csv(classified.output), read_csv(output)
    assert list(after[0])[-2:] == ["ulr_label", "ulr_confidence"]
    assert "ulr_unrefined" not in after[0]
    assert (summary["documents"], summary["moved"], summary["iterations"]) == (
        len(after),
        None,
        None,
    )
    for column in ("id", "message", "ulr_label", "ulr_confidence"):
        assert [row[column] for row in after] == [row[column] for row in before]


def test_new_documents_through_pipes(classified, ulr):
    documents = b'{"text": "I forgot my password and cannot log in"}\n{"text": null}\n'
    result = ulr("predict", classified.model, "-", "-o", "-", "--prefix", "", stdin=documents)
    assert (result.code, result.err) == (0, "")
    first, second = map(json.loads, result.out.splitlines())
    assert list(first) == ["text", "label", "confidence"]
    assert first["label"] == "account access"
    assert second["text"] is None


def test_folder_that_is_no_model_is_told(tmp_path, ulr):
    result = ulr("predict", tmp_path, "in.csv")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"ulr: {tmp_path} is not a saved model; it has no model.json.\n"


def test_two_for_standard_output_is_an_error_of_usage(classified, ulr):
    result = ulr("predict", classified.model, classified.source, "--json", "-o", "-")
    assert (result.code, result.out) == (2, "")
    assert "both want standard output" in result.err
