"""A report on a classification: one HTML file that opens from disk and makes no request.

`data` has what it shows as plain values, `collect` gathers them, `layout` makes the map, `render`
writes the file, and `job` does all of it for a table or a list of texts. The parts in `static` are
plain JavaScript modules, which other pages can use too.
"""

from ulr.report.data import ReportData
from ulr.report.job import report_file, report_sample, report_texts
from ulr.report.render import Report, refuse_report

__all__ = ["Report", "ReportData", "refuse_report", "report_file", "report_sample", "report_texts"]
