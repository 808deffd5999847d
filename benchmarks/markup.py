"""What markup, header fields, repeated texts, capitals and numbers in texts cost, as a Markdown table.

    python -m benchmarks.markup --data DIR [--encoder static] [--sample N]
        [--write docs/encoders-measured.md]

Each kind is put into every text of the paper's four datasets, with a fixed seed. `as they are` is
what encoders that are given the whole text make of it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.four_datasets import data_parser
from benchmarks.measuring import markdown, publish
from reproduction.cells import short_name
from reproduction.datasets import DATASETS
from reproduction.documents import read_documents
from reproduction.names import label_set
from ulr.classifier import EncodedTexts, Settings, as_texts, count_words, fit
from ulr.encoders import encode_texts, load_encoder

_random = random.Random(0)
_NAMES = "Albany Baker Carter Dalton Easton Fisher Grant Harper Irving Jordan Keller Logan".split()


def _address() -> str:
    """A web address with a number in base 16."""
    start = _random.choice(["https://www.example.com/", "http://e.org/", "www.example.org/a/"])
    return f"{start}{_random.randrange(16**12):012x}"


def _in_words(share: float, *changes: Callable[[str], str]) -> Callable[[str], str]:
    """Change a share of the words of a text."""

    def change(text: str) -> str:
        return " ".join(
            _random.choice(changes)(word) if _random.random() < share else word
            for word in text.split()
        )

    return change


_FOOTER = (
    "\n\nThis message and any attachments are confidential and intended solely for the addressee. "
    "If you have received it in error, please delete it and notify the sender."
)


def _html(text: str) -> str:
    """A text as the body of a page."""
    words = _in_words(
        0.15, "<b>{}</b>".format, "{}<br/>".format, '<span class="s">{}</span>'.format
    )
    body = words(text).replace("'", "&#39;").replace('"', "&quot;")
    return f'<div class="content"><p>{body}</p></div>'


def _mail(text: str) -> str:
    """A text as a message with header fields and a signature."""
    sender, first, last = (_random.choice(_NAMES) for _ in range(3))
    return (
        f"From: {first}.{last}@{sender.lower()}.example.com ({first} {last})\n"
        f"Date: Mon, {_random.randrange(1, 29)} May 2024 12:05:11 +0200\n"
        f"Message-ID: <{_random.randrange(16**12):012x}@{sender.lower()}.example.com>\n"
        f"X-Mailer: {_random.choice(_NAMES)} 7.1\nLines: {_random.randrange(99)}\n\n"
        f"{text}\n-- \n{first} {last}, {_random.choice(_NAMES)} University\n"
        f"{first}@{sender.lower()}.example.com  +49 228 {_random.randrange(10**6)}\n"
    )


KINDS: dict[str, Callable[[str], str]] = {
    "clean": str,
    "HTML": _html,
    "web addresses": _in_words(0.06, lambda word: f"{word} {_address()}"),
    "Markdown": _in_words(0.15, "**{}**".format, "`{}`".format, lambda w: f"[{w}]({_address()})"),
    "BBCode": _in_words(0.15, "[b]{}[/b]".format, lambda w: f"[url={_address()}]{w}[/url]"),
    "wiki": _in_words(0.15, "[[{}]]".format, "'''{}'''".format, '{}<ref name="a"/>'.format),
    "mail": _mail,
    "lines": lambda text: "\r\n\r\n" + _in_words(0.06, "{}\n\n".format)(text),
    "footer": lambda text: text + _FOOTER,
    "redacted": _in_words(0.15, "{} XXXX".format),
    "capitals": lambda text: f"{text.upper()} Thanks",
    "numbers": lambda text: f"[#{_random.randrange(10**6):06}] 2024-05-12 12:05:11 {text}",
}


def _accuracy(texts: list[str], settings: Settings, truth: list[int]) -> list[float]:
    """Accuracy in percent where the encoder reads all of the texts, and where it does not."""
    whole = EncodedTexts(texts, encode_texts(settings.encoder, texts), count_words(texts))
    found = []
    for documents in (whole, as_texts(texts)):
        predictions = fit(documents, settings).predictions
        assert predictions is not None
        found.append(100 * float(np.mean(predictions.labels == np.array(truth))))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--sample", type=int, help="most documents of a dataset")
    options = parser.parse_args(arguments)
    encoder = load_encoder(options.encoder)
    rows = []
    for name in DATASETS:
        documents = read_documents(name, options.data, at_most=options.sample)
        settings = Settings(label_set(name), encoder=encoder, cache=options.cache)
        cells = []
        for kind, change in KINDS.items():
            texts = list(map(change, documents.texts))
            print(f"{name}: {kind}", file=sys.stderr)
            whole, read = _accuracy(texts, settings, documents.truth)
            cells.append(f"{whole:.1f} → {read:.1f}")
        rows.append([f"{short_name(name)}, {len(documents.texts):,}", *cells])
    publish(markdown(["dataset, documents", *KINDS], rows), options.write, "markup")
    return 0


if __name__ == "__main__":
    sys.exit(main())
