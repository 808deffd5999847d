"""Whole-file jobs: read a table, encode, refine, write a table, report.

Plain functions behind the command line and the page, which parse arguments and display reports.
"""

from ulr.jobs.audit import AuditOutput, AuditReport, UnstableDocument, audit_file
from ulr.jobs.classify import classify_file
from ulr.jobs.evaluate import TrueLabels, evaluate_file
from ulr.jobs.output import Output
from ulr.jobs.predict import predict_file
from ulr.jobs.progress import Listener, Silent
from ulr.jobs.reports import EvaluationReport, JobReport, LabelCounts, ShownDocument
from ulr.jobs.support import LabelMatching, Support, read_support, text_columns

__all__ = [
    "AuditOutput",
    "AuditReport",
    "EvaluationReport",
    "JobReport",
    "LabelCounts",
    "LabelMatching",
    "Listener",
    "Output",
    "ShownDocument",
    "Silent",
    "Support",
    "TrueLabels",
    "UnstableDocument",
    "audit_file",
    "classify_file",
    "evaluate_file",
    "predict_file",
    "read_support",
    "text_columns",
]
