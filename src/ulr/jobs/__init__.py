"""Whole-file jobs: read a table, encode, refine, write a table, tell how it went.

Plain functions behind the command line; parsing arguments and printing are left to it.
"""

from ulr.jobs.told import (
    EvaluationReport,
    JobReport,
    LabelCounts,
    Listener,
    Output,
    ShownDocument,
)
from ulr.jobs.work import classify_file, evaluate_file, predict_file, text_columns

__all__ = [
    "EvaluationReport",
    "JobReport",
    "LabelCounts",
    "Listener",
    "Output",
    "ShownDocument",
    "classify_file",
    "evaluate_file",
    "predict_file",
    "text_columns",
]
