"""Texts with what is left of HTML in them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ulr import ZeroShotClassifier
from ulr.markup import plain_text, readable, readable_texts


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<p>The bank&#39;s <B class='x'>profit</B> rose<br/></p>", " The bank's profit rose "),
        ("Bush #39;s plan, quot;no quot;", "Bush 's plan, quot;no quot;"),
        ("&lt;i&gt;late&lt;/i&gt; goal", " late goal"),
        ("&amp;lt;p&amp;gt;escaped twice", " escaped twice"),
        ("<style>p { color: red }</style><!--[if mso]>x<![endif]--> mail", " x mail"),
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


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("see https://example.org/a?b=1 or www.example.org/x", "see  or"),
        ("## **Refund** of `order` [here](http://e.org/x)", "Refund  of  order   here ( )"),
        ("[b]Late[/b] [url=http://e.org]parcel[/url]", "Late   parcel"),
        ("'''Bonn''' {{cite web|url=x}} [[Rhine|river]]", "Bonn    Rhine river"),
        ("[#482913] 2024-05-12 12:05:11 no refund", "#   no refund"),
        ("MY CARD WAS CHARGED TWICE", "my card was charged twice"),
        (
            "\ufeffthe of\ufb01ce re\u00adfused the \uff32\uff45\uff46\uff55\uff4e\uff44",
            "the office refused the Refund",
        ),
        ("MY CARD WAS CHARGED TWICE, ok?", "my card was charged twice, ok?"),
        ("write to a.b+c@mail.example.org, please", "write to , please"),
        ("> From: Ann <a@e.org>\r\nSubject: Late\r\nMy parcel", "Subject: Late My parcel"),
        ("X-Mail: 1\n  2\nLines: 14\nDate: Mon, 2:05 pm\nLate a@e.org", "Late"),
        ("No refund.\n-- \nAnn Other\nSales, Bonn\n", "No refund."),
    ],
)
def test_encoders_read_no_marks_addresses_and_long_numbers(text, read):
    assert " ".join(readable(text).split()) == " ".join(read.split())


@pytest.mark.parametrize(
    "text",
    [
        *(
            "NASA and the 2024 budget: 401k, error 404, 9/11",
            "C# (.NET) at 5 o'clock",
            "42",
            "",
            "***",
        ),
        *("From: London\nTo: Paris\nDate: 5 May", "tell @ann about it", "Lines: two\nReferences"),
    ],
)
def test_encoders_read_other_texts_as_they_are(text):
    assert readable(text) == text.replace("\n", " ")


def test_a_line_of_dashes_before_many_lines_is_no_signature():
    assert len(readable("One\n--" + "\nLine" * 20).split()) == 21


@pytest.mark.parametrize(
    "piece",
    [
        "1.",
        "[b=",
        "{{",
        "http://",
        "--",
        "'",
        "1",
        "*",
        "\n--\n",
        "a.",
        "a@",
        "\nX-a: @",
        "\nTo:",
        "> ",
    ],
)
def test_reading_takes_linear_time(piece):
    assert len(readable(piece * 200_000 + "a")) <= 200_000 * len(piece) + 1


@given(
    st.lists(st.text(st.sampled_from(list("aAwW.:/-='#019,*[<@\\ \n\t\u2003\x00é٣’"))), max_size=40)
)
@settings(deadline=None)
def test_many_texts_are_read_as_each_is(texts):
    texts = [*texts, "x" * 3000, "X" * 3000, "1" * 3000]
    assert readable_texts(texts) == list(map(readable, texts))
    assert readable_texts(texts * 40) == list(map(readable, texts)) * 40


def test_marks_change_neither_labels_nor_the_exactness_of_explanations():
    texts = ["The striker scored", "Shares fell", "A late goal won it", "Profits rose"]
    marked = [f"**{text}** https://e.org/{i}a7 [#{i}001234]" for i, text in enumerate(texts)]
    clf = ZeroShotClassifier(["sports", "business"], encoder="static").fit(texts)
    assert clf.predict(marked).tolist() == clf.predict(texts).tolist()
    assert clf.predict([text.upper() for text in texts]).tolist() == clf.predict(texts).tolist()
    for text in (marked[2], texts[2].upper()):
        (found,) = clf.explain([text])
        assert found.exact
        assert found.rest + sum(each.weight for each in found.for_label) - sum(
            each.weight for each in found.for_runner_up
        ) == pytest.approx(found.log_odds, abs=0.01)
