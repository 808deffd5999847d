"""What is read of texts: no HTML and, by encoders, no other markup, addresses or long numbers.

`plain_text` removes HTML from every text that comes in: what people see are plain texts, too. `readable`
is what encoders and counts of words are given. Every pattern takes time in proportion to the text.
"""

from __future__ import annotations

import html
import re
import string
from collections.abc import Iterable
from unicodedata import normalize

import numpy as np

_TAGS = (
    "a abbr acronym address area article aside b base basefont bdi bdo big blockquote body br "
    "button canvas caption center cite code col colgroup dd del details dfn div dl dt em embed "
    "fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr "
    "html i iframe img input ins kbd label legend li link main map mark meta nav noscript nowiki "
    "object ol optgroup option p param picture pre q ref s samp script section select small "
    "source span strike strong style sub summary sup svg table tbody td template textarea tfoot "
    "th thead time title tr tt u ul var video wbr"
)
# Only tags that HTML has: ``a < b``, ``vector<int>`` and addresses in angle brackets stay. Contents of
# style sheets and scripts go with them, unless there is a < in them.
_markup = re.compile(
    r"<(style|script)\b[^<>]*>[^<]*</\1\s*>|<![-\[a-z][^<>]*>"
    rf"|</?(?:{'|'.join(_TAGS.split())})(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
).sub
# Numbers that lost their ampersand, as in "#39;", are frequent in news feeds.
_entities = re.compile(
    r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,31}\d{0,2});|#(?:3[4689]|6[02]|1[4-6]\d|8\d{3});",
    re.IGNORECASE,
).sub

_MARKS = r"*_`~|{}\[\]^\\<>"  # of Markdown, wikis, tables, quoted mail
_has_mark = re.compile(f"[{_MARKS}]").search
_marks = re.compile(
    # BBCode, templates of wikis, and marks
    r"\[/?(?:b|i|u|s|url|img|quote|code|list|\*|size|color|font|center)(?:=[^\[\]]*)?\]"
    rf"|\{{\{{[^{{}}]*\}}\}}|[{_MARKS}]+",
    re.IGNORECASE,
).sub
_invisible = re.compile("[\u00ad\u200b\u2060\ufeff]").sub
_rules = re.compile(r"-{2,}|={2,}|#{2,}|'{2,}").sub
_spaces = re.compile(" {2,}").sub
_addresses = re.compile(r"(?:(?:https?|ftp)://|www\.)[^\s<>\"\])}]+").sub
_mail_addresses = re.compile(r"(?<![\w.+%-])[\w.+%-]++@[\w.-]+").sub
# Header fields of messages, quoted ones included, that say nothing about the topic, unlike the subject.
# A form may have lines such as "From: London", which have no address, and stay.
_header_fields = re.compile(
    r"^[>| \t]*(?:"
    r"(?:From|To|Cc|Bcc|Sender|Reply-To|Followup-To)[ \t]*:[^\n]*@[^\n]*"
    r"|(?:Date|Sent)[ \t]*:[^\n]*\d:\d\d[^\n]*"
    r"|Lines[ \t]*:[ \t]*\d+[ \t\r]*$"
    r"|(?:(?:X|NNTP|Content|MIME|List|DKIM|ARC)-[\w-]+|Message-ID|In-Reply-To|References|Received"
    r"|Return-Path|Delivered-To|User-Agent|Distribution)[ \t]*:[^\n]*(?:\n[ \t]+[^\n]+)*)",
    re.IGNORECASE | re.MULTILINE,
).sub
# A line of two dashes and a blank, and at most nine more lines.
_signature = re.compile(r"\n-- ?\r?\n(?:[^\n]*\n){0,8}[^\n]*\Z").sub
_has_long_number = re.compile(r"\d[\d:.,/-]{4}").search
_long_numbers = re.compile(r"(?<![\w:.,/-])\d[\d:.,/-]{4,}+(?!\w)").sub

_IS_MARK, _IS_DOUBLED, _IS_DIGIT, _IN_NUMBER = 1, 2, 4, 8
_KINDS = bytes(
    _IS_MARK * (each == "@" or (each.isspace() and each != " ") or bool(_has_mark(each)))
    | _IS_DOUBLED * (each in "-=#'/w ")  # rules, and what addresses begin with
    | _IS_DIGIT * (each in "0123456789")
    | _IN_NUMBER * (each in "0123456789:.,/-")
    for each in map(chr, range(256))
)
_SMALL, _CAPITALS = string.ascii_lowercase.encode(), string.ascii_uppercase.encode()
# Positive in sum where more than two of three letters are capitals.
_CASES = bytes(1 if each in _CAPITALS else 254 if each in _SMALL else 0 for each in range(256))
_SCANNED_TEXTS, _MOST_SCANNED = 1024, 2000  # at once; characters of a text


def plain_text(text: str) -> str:
    """A text without HTML; entities become the characters that they stand for.

    Examples
    --------
    >>> plain_text("<p>Fish &amp; chips<br/>for x < 3</p>")
    ' Fish & chips for x < 3 '
    """
    if ";" in text and ("&" in text or "#" in text):
        for _ in range(2):  # escaped twice by some exports
            text = _entities(lambda entity: html.unescape(f"&{entity[0].lstrip('&')}"), text)
    # Encoders take a space that does not break for a part of the word.
    text = text.replace("\xa0", " ")
    return _spaces(" ", _markup(" ", text)) if "<" in text else text


def plain_texts(texts: Iterable[str]) -> list[str]:
    """Texts without HTML; those without any of its characters are returned as they are."""
    return [
        plain_text(text) if "<" in text or ";" in text or "\xa0" in text else text for text in texts
    ]


def readable(text: str) -> str:
    """A text without marks, addresses and numbers of five digits or more, not all in capitals.

    Messages lose their signature, and header fields other than the subject; line breaks become blanks.
    Encoders cut all of these into many tokens that say nothing (benchmarks/markup.py). A text of nothing
    else stays as it is.

    Examples
    --------
    >>> readable("**Refund** for order 2024-001734, see https://example.org/r?id=7")
    'Refund for order see'
    >>> readable("MY CARD WAS CHARGED TWICE")
    'my card was charged twice'
    """
    found = without_marks(text)
    return (found.lower() if in_capitals(found) else found) or text


def in_capitals(text: str) -> bool:
    """Whether more than two of three letters are capitals."""
    letters = text.encode("ascii", "ignore")
    n_small = len(letters) - len(letters.translate(None, _SMALL))
    return text.isupper() or len(letters) - len(letters.translate(None, _CAPITALS)) > 2 * n_small


def without_marks(text: str) -> str:
    """A text as `readable` returns it, but for capitals; empty if it has nothing else."""
    # Ligatures and wide letters become letters; parts of words that PDF and HTML divide are joined.
    found = text if text.isascii() else normalize("NFKC", _invisible("", text))
    if "\n--" in found:
        found = _signature("", found.rstrip())
    if "@" in found:
        found = _header_fields("", found)
    if "://" in found or "www." in found:
        found = _addresses(" ", found)
    if "@" in found:
        found = _mail_addresses(" ", found)
    if _has_mark(found):
        found = _marks(" ", found)
    if "--" in found or "==" in found or "##" in found or "''" in found:
        found = _rules(" ", found)
    if _has_long_number(found):
        found = _long_numbers(" ", found)
    return " ".join(found.split())


def readable_texts(texts: Iterable[str]) -> list[str]:
    """What encoders are given of some texts."""
    found = list(texts)
    for start in range(0, len(found), _SCANNED_TEXTS):
        for place in _suspects(found[start : start + _SCANNED_TEXTS]):
            found[start + place] = readable(found[start + place])
    return found


def _suspects(texts: list[str]) -> set[int]:
    """Positions of texts that `readable` may change: NumPy scans many at once."""
    # Long texts, and those in other scripts, are not scanned: a mark stands for them.
    scanned = [text if len(text) <= _MOST_SCANNED and text.isascii() else "*" for text in texts]
    content = " ".join(["", *scanned, ""]).encode()  # blanks at the ends of texts are doubled
    letters = np.frombuffer(content, np.uint8)
    kinds = np.frombuffer(content.translate(_KINDS), np.uint8)
    found = (kinds & _IS_MARK).astype(bool)
    found[1:] |= (letters[1:] == letters[:-1]) & (kinds[1:] & _IS_DOUBLED).astype(bool)
    numeric = (kinds & _IN_NUMBER).astype(bool)
    found[:-4] |= (
        (kinds[:-4] & _IS_DIGIT).astype(bool)
        & (numeric[1:-3] & numeric[2:-2])
        & (numeric[3:-1] & numeric[4:])
    )
    ends = 1 + np.cumsum(np.fromiter(map(len, scanned), np.int64, count=len(scanned)) + 1)
    rows = np.searchsorted(ends, np.flatnonzero(found), side="right")
    cases = np.frombuffer(content.translate(_CASES), np.int8)
    starts = np.append(1, ends[:-1]) if texts else ends
    capitals = np.add.reduceat(cases, starts, dtype=np.int64) > 0
    return {*rows.tolist(), *np.flatnonzero(capitals).tolist()}
