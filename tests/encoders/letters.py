"""A user's own encoder, for tests and for the processes that they start."""

import numpy as np


class Letters:
    """Counts letters, and records the batches that it was given."""

    fingerprint = "letters"
    batch_texts = 10

    def __init__(self):
        self.asked = []

    def encode(self, texts, /):
        self.asked.append(list(texts))
        counts = [[text.count(chr(97 + i)) for i in range(26)] for text in texts]
        return np.array(counts, dtype=np.float32)


TEXTS = [f"{'abc' * (i % 7)} number {i % 31} {'xyz' * i}" for i in range(45)]
VECTORS = Letters().encode(TEXTS)
