"""The paper's losses, against numbers computed by hand."""

import math

import pytest
import torch

from ulr.train.losses import DotProductLoss, HingeLoss

TEXTS = torch.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=torch.float64)
CATEGORIES = torch.tensor(
    [[[1.0, 1.0], [0.0, 1.0], [2.0, 0.0]], [[0.0, -1.0], [1.0, 1.0], [9.0, 9.0]]],
    dtype=torch.float64,
)
REAL = torch.tensor([[True, True, True], [True, True, False]])


class Table(torch.nn.Module):
    """A model whose vectors are rows of a table."""

    def __init__(self, rows):
        super().__init__()
        self.rows = torch.nn.Parameter(torch.tensor(rows))

    def forward(self, features):
        return {"sentence_embedding": self.rows[features["input_ids"]]}


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_binary_cross_entropy_of_dot_products_by_hand():
    loss = DotProductLoss(torch.nn.Identity())
    scores = loss.compare(TEXTS, CATEGORIES)
    assert scores.tolist() == [[3.0, 2.0, 2.0], [1.0, -0.5, -4.5]]
    terms = [
        -math.log(sigmoid(3.0)),
        -math.log(1 - sigmoid(2.0)),
        -math.log(1 - sigmoid(2.0)),
        -math.log(sigmoid(1.0)),
        -math.log(1 - sigmoid(-0.5)),
    ]
    assert float(loss.from_scores(scores, REAL)) == pytest.approx(sum(terms) / 5, rel=1e-12)


def test_hinge_of_squared_distances_by_hand():
    loss = HingeLoss(torch.nn.Identity(), margin=1.5)
    scores = loss.compare(TEXTS, CATEGORIES)
    assert (-scores).tolist() == [[1.0, 2.0, 5.0], [0.25, 4.25, 172.25]]
    # max(1 + 1.5 - 2, 0), max(1 + 1.5 - 5, 0), max(0.25 + 1.5 - 4.25, 0)
    assert float(loss.from_scores(scores, REAL)) == pytest.approx(0.5 / 3, rel=1e-12)


def test_categories_of_a_text_are_found_by_their_index():
    model = Table([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [1.0, 1.0]])
    features = [{"input_ids": torch.tensor(ids)} for ids in ([0, 1], [2], [3])]
    loss = DotProductLoss(model)(features, torch.tensor([[0, 1], [1, -1]]))
    # scores: text 0 with rows 2 (true) and 3, text 1 with row 3 (true)
    terms = [-math.log(sigmoid(3.0)), -math.log(1 - sigmoid(1.0)), -math.log(sigmoid(2.0))]
    assert loss.item() == pytest.approx(sum(terms) / 3, rel=1e-6)
    loss.backward()
    assert model.rows.grad.abs().sum() > 0


@pytest.mark.parametrize(("loss", "expected"), [(DotProductLoss, math.log(2)), (HingeLoss, 0)])
def test_losses_are_finite_without_false_categories(loss, expected):
    mask = torch.tensor([[True, False]])
    found = loss(torch.nn.Identity()).from_scores(torch.zeros(1, 2), mask)
    assert float(found) == pytest.approx(expected)
