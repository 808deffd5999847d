"""The graph of operators that computes what a linear rule and the classifier around it compute."""

from __future__ import annotations

import numpy as np

from ulr.classifier import Fitted, count_words
from ulr.integrations.onnx_format import Graph
from ulr.refinement import LinearRule

_TINY = 1e-30  # length
_CERTAIN = 50.0  # log odds of the none label of a text without words
# The threshold of the none label is the similarity of a fitted text, which it is compared with.
_ROUNDING = 1e-6


def graph_of(fitted: Fitted, rule: LinearRule) -> Graph:
    """Embeddings, and counts of words where the rule weighs them, to probabilities and a label."""
    graph, n_labels = Graph(), rule.n_labels
    vectors = graph.input("embeddings", "float32", ["n", rule.n_dims])
    squares = graph.add("ReduceSum", graph.add("Mul", vectors, vectors), _axis(graph, 1))
    lengths = graph.add("Sqrt", squares)
    unit = graph.add("Div", vectors, graph.add("Max", lengths, graph.constant(_TINY)))
    scores = graph.constant(rule.offsets)
    for view in rule.views:
        points = unit if view.normalize else vectors
        if view.centre is not None:
            points = _unit(graph, graph.add("Sub", points, graph.constant(view.centre)), 1e-6)
        products = graph.add("MatMul", points, graph.constant(view.weights.T))
        scores = graph.add("Add", products, scores)
    if rule.subtract_square:
        scores = graph.add("Sub", scores, squares)
    if rule.words is not None:
        scores = graph.add("Add", scores, _word_scores(graph, rule))
    zero = graph.constant(0.0)
    empty = graph.add("Equal", lengths, zero)
    label = graph.add("ArgMax", scores, axis=1)
    logits = graph.add("Div", scores, graph.constant(fitted.temperature))
    logits = graph.add("Where", empty, zero, logits)
    missing, no_label = empty, -1
    if (none := fitted.none) is not None and fitted.anchors is not None:
        names = graph.add(
            "Gather",
            graph.constant(fitted.anchors),
            graph.add("Squeeze", label, one := _axis(graph, 1)),
        )
        similarity = graph.add("ReduceSum", graph.add("Mul", unit, names), one)
        below = graph.add("Sub", graph.constant(none.threshold), similarity)
        excess = graph.add("Div", below, graph.constant(none.scale))
        odds = graph.add("Add", graph.add("ReduceMax", logits, axes=[1]), excess)
        odds = graph.add("Where", empty, graph.constant(_CERTAIN), odds)
        logits = graph.add("Concat", logits, odds, axis=1)
        missing, no_label = (
            graph.add("Or", empty, graph.add("Greater", below, graph.constant(_ROUNDING))),
            n_labels,
        )
    label = graph.add("Where", missing, graph.constant(no_label, "int64"), label)
    probabilities = graph.add("Softmax", logits, axis=1)
    n_columns = n_labels + (fitted.none is not None)
    graph.output(probabilities, "probabilities", "float32", ["n", n_columns])
    graph.output(graph.add("Squeeze", label, _axis(graph, 1)), "label", "int64", ["n"])
    return graph


def _axis(graph: Graph, axis: int) -> str:
    return graph.constant([axis], "int64")


def _unit(graph: Graph, points: str, least: float) -> str:
    """Rows scaled to length one, unless they are shorter than some length."""
    squares = graph.add("ReduceSum", graph.add("Mul", points, points), _axis(graph, 1))
    lengths = graph.add("Max", graph.add("Sqrt", squares), graph.constant(least))
    return graph.add("Div", points, lengths)


def _word_scores(graph: Graph, rule: LinearRule) -> str:
    """Logarithmic tf-idf of the words that the rule weighs, times their weights."""
    assert rule.words is not None
    weighed, n_words = rule.words, len(rule.words.columns)
    n_columns = count_words([""]).shape[1]
    words = graph.input("words", "int64", ["n", "n_words"])
    counts = graph.input("counts", "float32", ["n", "n_words"])
    # The words that the rule does not weigh share one more row, of zeros.
    rows = np.full(n_columns, n_words)
    rows[weighed.columns] = np.arange(n_words)
    places = graph.add("Gather", graph.constant(rows, "int32"), words)
    idf = graph.add("Gather", graph.constant(np.append(weighed.idf, 0.0)), places)
    one = graph.constant(1.0)
    frequency = graph.add("Add", one, graph.add("Log", graph.add("Max", counts, one)))
    frequency = graph.add("Mul", frequency, graph.add("Min", counts, one))  # 0 of what pads
    values = _unit(graph, graph.add("Mul", frequency, idf), 1e-9)
    table = graph.constant(np.pad(weighed.weights, ((0, 1), (0, 0))))
    rows_of_words = graph.add("Gather", table, places)  # (n, n_words, n_labels)
    row = graph.add("Unsqueeze", values, _axis(graph, 1))
    total = graph.add("Squeeze", graph.add("MatMul", row, rows_of_words), _axis(graph, 1))
    return graph.add("Add", total, graph.constant(weighed.offsets))
