"""Whole-file jobs: read a table, encode, refine, write a table, tell how it went.

Plain functions behind the command line; parsing arguments and printing are left to it.
"""

from ulr.jobs.auditing import AuditOutput, AuditReport, audit_file
from ulr.jobs.support import Support, label_name, read_support, text_columns
from ulr.jobs.told import (
    EvaluationReport,
    JobReport,
    LabelCounts,
    Listener,
    Output,
    ShownDocument,
)
from ulr.jobs.work import classify_file, evaluate_file, predict_file

__all__ = [
    "AuditOutput",
    "AuditReport",
    "EvaluationReport",
    "JobReport",
    "LabelCounts",
    "Listener",
    "Output",
    "ShownDocument",
    "Support",
    "audit_file",
    "classify_file",
    "evaluate_file",
    "label_name",
    "predict_file",
    "read_support",
    "text_columns",
]
