"""Losses, their gradients, and the learning rate schedule."""

import math

import pytest
import torch
import transformers

from ulr.train.loop import learning_rate_at
from ulr.train.losses import binary_cross_entropy, contrastive_hinge, dot_product, squared_l2

TEXTS = torch.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=torch.float64)
CATEGORIES = torch.tensor(
    [[[1.0, 1.0], [0.0, 1.0], [2.0, 0.0]], [[0.0, -1.0], [1.0, 1.0], [9.0, 9.0]]],
    dtype=torch.float64,
)
REAL = torch.tensor([[True, True, True], [True, True, False]])


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_dot_products_by_hand():
    assert dot_product(TEXTS, CATEGORIES).tolist() == [[3.0, 2.0, 2.0], [1.0, -0.5, -4.5]]


def test_squared_distances_by_hand():
    assert squared_l2(TEXTS, CATEGORIES).tolist() == [[1.0, 2.0, 5.0], [0.25, 4.25, 172.25]]


def test_binary_cross_entropy_by_hand():
    loss = binary_cross_entropy(dot_product(TEXTS, CATEGORIES), REAL)
    terms = [
        -math.log(sigmoid(3.0)),
        -math.log(1 - sigmoid(2.0)),
        -math.log(1 - sigmoid(2.0)),
        -math.log(sigmoid(1.0)),
        -math.log(1 - sigmoid(-0.5)),
    ]
    assert float(loss) == pytest.approx(sum(terms) / 5, rel=1e-12)


def test_contrastive_hinge_by_hand():
    distances = torch.tensor([[1.0, 1.2, 5.0], [4.0, 3.0, 0.0]], dtype=torch.float64)
    loss = contrastive_hinge(distances, REAL, margin=0.5)
    assert float(loss) == pytest.approx((0.3 + 0.0 + 1.5) / 3, rel=1e-12)


def test_the_default_margin_is_one_half():
    distances = torch.tensor([[1.0, 1.0]])
    assert float(contrastive_hinge(distances, torch.ones(1, 2, dtype=torch.bool))) == 0.5


@pytest.mark.parametrize(
    ("compare", "loss"), [(dot_product, binary_cross_entropy), (squared_l2, contrastive_hinge)]
)
def test_gradients_agree_with_finite_differences(compare, loss):
    def whole(texts, categories):
        return loss(compare(texts, categories), REAL)

    texts, categories = TEXTS.clone().requires_grad_(), CATEGORIES.clone().requires_grad_()
    assert torch.autograd.gradcheck(whole, (texts, categories))
    # and by hand, for one of them
    step = torch.zeros_like(TEXTS)
    step[0, 1] = 1e-6
    slope = (whole(TEXTS + step, CATEGORIES) - whole(TEXTS - step, CATEGORIES)) / 2e-6
    whole(texts, categories).backward()
    assert float(texts.grad[0, 1]) == pytest.approx(float(slope), abs=1e-8)


@pytest.mark.parametrize("loss", [binary_cross_entropy, contrastive_hinge])
def test_padding_does_not_change_a_loss(loss):
    figures = torch.tensor([[1.0, 0.4, 7.0]], requires_grad=True)
    short = loss(figures[:, :2].detach(), torch.tensor([[True, True]]))
    padded = loss(figures, torch.tensor([[True, True, False]]))
    padded.backward()
    assert float(padded.detach()) == float(short)
    assert figures.grad[0, 2] == 0


def test_losses_are_finite_without_false_categories():
    real = torch.tensor([[True, False]])
    assert float(contrastive_hinge(torch.zeros(1, 2), real)) == 0
    assert float(binary_cross_entropy(torch.zeros(1, 2), real)) == pytest.approx(math.log(2))


def test_learning_rates_rise_to_the_peak_and_fall_to_zero():
    rates = [learning_rate_at(step, 20, 2e-5) for step in range(21)]
    assert rates[:3] == [0.0, 1e-5, 2e-5]
    assert rates[11] == pytest.approx(1e-5, rel=1e-12)
    assert rates[19] == pytest.approx(2e-5 / 18, rel=1e-12)
    assert rates[20] == 0.0


@pytest.mark.parametrize(("n_steps", "warmup"), [(1, 0.1), (9, 0.1), (10, 0.1), (57, 0.25)])
def test_learning_rates_equal_those_of_transformers(n_steps, warmup):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], lr=3e-4)
    theirs = transformers.get_linear_schedule_with_warmup(optimizer, int(warmup * n_steps), n_steps)
    for step in range(n_steps):
        expected = theirs.get_last_lr()[0]
        assert learning_rate_at(step, n_steps, 3e-4, warmup) == pytest.approx(expected, rel=1e-12)
        optimizer.step()
        theirs.step()
