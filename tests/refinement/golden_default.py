"""Inputs of the stored results of the default method.

``python tests/refinement/golden_default.py`` writes them again, from the plain float64 version.
"""

from pathlib import Path

import numpy as np
from problems import topics, word_counts

SKEWED = [0.6, 0.3, 0.06, 0.04]


def arrays_of(case):
    """Documents, anchors and options of a case."""
    kinds = {
        "balanced": {"seed": 1},
        "skewed": {"seed": 7, "sizes": SKEWED},
        "known": {"seed": 3, "spread": 1.4},
        "few": {"seed": 4, "n": 40, "n_labels": 6},
        "words": {"seed": 5, "spread": 1.6, "off": 1.0},
        "skewed words": {"seed": 8, "spread": 1.6, "sizes": SKEWED},
    }
    documents, anchors, truth = topics(**kinds[case])
    options = {}
    if case == "known":
        options["known"] = np.where(np.arange(len(truth)) % 9 == 0, truth, -1)
    if case.endswith("words"):
        options["word_counts"] = word_counts(truth, seed=5)
    return documents, anchors, options


if __name__ == "__main__":
    import reference

    scores = {}
    for name in ("balanced", "skewed", "known", "few", "words", "skewed words"):
        given, anchors, options = arrays_of(name)
        scores[name] = reference.discriminant(
            given, anchors, options.get("known"), options.get("word_counts")
        ).astype(np.float32)
    np.savez_compressed(Path(__file__).parent / "golden" / "discriminant.npz", **scores)
