"""Lists of labels in the forms in which people paste them."""

import pytest

from ulr.errors import LabelError
from ulr.web.lists import labels_of_list


@pytest.mark.parametrize(
    "text",
    [
        "a, b: x; y, c",
        "a\nb: x; y\nc\n",
        "- a\n\n- b: x, y\n- c",
        "1. a\n2. b\tx; y;\n3. c",
        "a; c\nb: x; y",
    ],
)
def test_a_pasted_list_has_labels_between_separators_or_one_a_line(text):
    found = {label.name: label.phrases for label in labels_of_list(text)}
    assert found == {"a": ("a",), "b": ("x", "y"), "c": ("c",)}


def test_a_list_may_have_one_label_but_not_none():
    assert [label.name for label in labels_of_list("a")] == ["a"]
    with pytest.raises(LabelError, match="no label in this list"):
        labels_of_list(" ,\n;")
