"""Texts without what is left of HTML in them: tags, comments, style sheets and entities.

Only tags that HTML has are removed, so that ``a < b``, ``vector<int>`` and addresses in angle brackets
stay. Every pattern takes time in proportion to the text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_TAGS = (
    "a abbr acronym address area article aside b base basefont bdi bdo big blockquote body br button "
    "canvas caption center cite code col colgroup dd del details dfn div dl dt em embed fieldset "
    "figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html i iframe "
    "img input ins kbd label legend li link main map mark meta nav noscript object ol optgroup option "
    "p param picture pre q s samp script section select small source span strike strong style sub "
    "summary sup svg table tbody td template textarea tfoot th thead time title tr tt u ul var video wbr"
)
# Contents of style sheets and scripts go with them, unless there is a < in them.
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
    return _markup(" ", text) if "<" in text else text


def plain_texts(texts: Iterable[str]) -> list[str]:
    """Texts without HTML; those without any of its characters are returned as they are."""
    return [
        plain_text(text) if "<" in text or ";" in text or "\xa0" in text else text for text in texts
    ]
