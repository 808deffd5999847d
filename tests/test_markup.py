"""Texts with what is left of HTML in them."""

import pytest

from ulr import ZeroShotClassifier
from ulr.markup import plain_text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<p>The bank&#39;s <B class='x'>profit</B> rose<br/></p>", " The bank's  profit  rose  "),
        ("Bush #39;s plan, quot;no quot;", "Bush 's plan, quot;no quot;"),
        ("&lt;i&gt;late&lt;/i&gt; goal", " late  goal"),
        ("&amp;lt;p&amp;gt;escaped twice", " escaped twice"),
        ("<style>p { color: red }</style><!--[if mso]>x<![endif]--> mail", "  x  mail"),
    ],
)
def test_html_is_removed(text, plain):
    assert plain_text(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d",
        "std::vector<int> of <T>",
        "from <ann@example.org>",
        "AT&T; R&D; 3 &",
        "issue #39 and #391;",
        "<3 <- -> <>",
    ],
)
def test_other_texts_are_left_as_they_are(text):
    assert plain_text(text) == text


@pytest.mark.parametrize("piece", ["<!--", "<a ", "<style>", "&#", "<", "&amp;"])
def test_repeated_openings_take_linear_time(piece):
    assert len(plain_text(piece * 200_000)) <= 200_000 * len(piece)


def test_markup_does_not_change_labels(tmp_path):
    texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    dirty = [f'<div class="sports">{text.replace(" ", "&nbsp;")}</div>' for text in texts]
    clf = ZeroShotClassifier(["sports", "business"], encoder="static").fit(texts)
    assert clf.predict(dirty).tolist() == clf.predict(texts).tolist()


def test_a_correction_finds_a_fitted_text_with_markup():
    texts = ["<p>The striker scored</p>", "Shares fell", "<p>A late goal</p>", "Profits rose"]
    clf = ZeroShotClassifier(["sports", "business"], encoder="static").fit(texts)
    clf.correct(["<p>A late goal</p>"], ["business"])
    assert len(clf.fitted_.documents.texts) == 4
    assert clf.predict(texts)[2] == "business"
