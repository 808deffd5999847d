"""Whole-file jobs: read a table, sample, encode, fit, label, write.

Plain functions behind the command line, the report, the page and the cluster.
"""

from ulr.jobs.ask import Question, Questions, ask
from ulr.jobs.classify import classify, fit_documents, predict, write_rows
from ulr.jobs.documents import Documents, draw_sample, label_rows
from ulr.jobs.output import Output, added_columns, check_columns, output_names
from ulr.jobs.result import (
    Comparison,
    LabelCounts,
    Pairs,
    Result,
    ShownDocument,
    Tally,
    compare,
    excerpt,
    sorted_pairs,
)
from ulr.jobs.sample import LARGEST_HASH, HashSample, Sample
from ulr.jobs.suggest import SuggestJob, check_labels_path, suggest, write_labels
from ulr.jobs.support import NO_SUPPORT, Support, guess_text_column, read_support, text_columns
from ulr.jobs.update import update

__all__ = [
    "LARGEST_HASH",
    "NO_SUPPORT",
    "Comparison",
    "Documents",
    "HashSample",
    "LabelCounts",
    "Output",
    "Pairs",
    "Question",
    "Questions",
    "Result",
    "Sample",
    "ShownDocument",
    "SuggestJob",
    "Support",
    "Tally",
    "added_columns",
    "ask",
    "check_columns",
    "check_labels_path",
    "classify",
    "compare",
    "draw_sample",
    "excerpt",
    "fit_documents",
    "guess_text_column",
    "label_rows",
    "output_names",
    "predict",
    "read_support",
    "sorted_pairs",
    "suggest",
    "text_columns",
    "update",
    "write_labels",
    "write_rows",
]
