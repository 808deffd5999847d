"""A report on a classification: one HTML file that opens from disk and makes no request.

`data` is what it shows beside the result of the job, `sample` draws the listed documents, `layout`
makes the map, `job` puts them together and `render` writes the file. The parts in `static` are plain
JavaScript modules, which the page of `ulr serve` uses too.
"""

from ulr.report.data import DocumentColumns, LabelEntry, ReportData
from ulr.report.job import (
    document_columns,
    label_entries,
    report_documents,
    report_predictions,
    report_sample,
    report_texts,
)
from ulr.report.layout import Layout
from ulr.report.render import Report, check_report_path
from ulr.report.sample import Drawn, Sampler

__all__ = [
    "DocumentColumns",
    "Drawn",
    "LabelEntry",
    "Layout",
    "Report",
    "ReportData",
    "Sampler",
    "check_report_path",
    "document_columns",
    "label_entries",
    "report_documents",
    "report_predictions",
    "report_sample",
    "report_texts",
]
