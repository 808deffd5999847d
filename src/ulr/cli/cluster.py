"""`ulr classify --cluster`: many files, labelled by several workers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.summaries import print_summary

if TYPE_CHECKING:
    from ulr.distributed.job import PartitionsReport
    from ulr.fitting import TextClassifier

_STOPPED = "finished files are kept, and the same command goes on with the others"


def needs_cluster(chosen: dict[str, Any]) -> bool:
    """Whether the options are those of several workers; only they read and write addresses."""
    names = "cluster workers part keep_vectors skip_broken".split()
    return any(map(chosen.get, names)) or any(
        "://" in name for name in (*chosen["file"], chosen["output"] or "")
    )


def classify_on_cluster(chosen: dict[str, Any]) -> None:
    """Run a job with the options of `ulr classify`, by the names of their parameters."""
    with plain_errors(_STOPPED):
        from ulr.distributed.executors import SerialExecutor, open_executor
        from ulr.distributed.job import classify_partitions, find_partitions, open_first
        from ulr.persistence import refuse_to_save
        from ulr.report import refuse_report

        output, part = _output(chosen), options.share(chosen["part"])
        if chosen["save_model"] is not None:
            refuse_to_save(chosen["save_model"], chosen["force"])
        if chosen["report"] is not None:
            refuse_report(chosen["report"], chosen["force"])
        how = options.table_format(chosen)
        files = find_partitions(chosen["file"])
        with (
            ProgressBar() as progress,
            open_first(files, how, output.skip_broken) as first,
            options.open_inputs(chosen, progress.preparing, first) as inputs,
            SerialExecutor()
            if part
            else open_executor(chosen["cluster"] or "local", chosen["workers"]) as executor,
        ):
            executor.on_refused = _note
            if executor.dashboard is not None:
                _note(f"dashboard: {executor.dashboard}")
            report = classify_partitions(
                files,
                inputs.table,
                inputs.columns,
                inputs.classifier,
                output,
                executor,
                progress,
                inputs.support,
                how=how,
                part=part,
            )
            _write_results(chosen, files, inputs.classifier, report, progress)
        _print_report(report, chosen["json"])
        if report.broken:
            raise typer.Exit(1)


def _write_results(
    chosen: dict[str, Any],
    files: list[str],
    classifier: TextClassifier,
    report: PartitionsReport,
    progress: ProgressBar,
) -> None:
    """Save the model and write the page, if that was asked for.

    A classifier that was fitted by an earlier run is loaded.
    """
    from ulr.distributed.storage import storage_of
    from ulr.fitting import TextClassifier
    from ulr.report import report_sample

    if chosen["save_model"] is None and chosen["report"] is None:
        return
    if not hasattr(classifier, "model_"):
        with storage_of(report.model).local_folder(report.model) as folder:
            classifier = TextClassifier.load(folder, encoder=classifier.encoder)
    if chosen["save_model"] is not None:
        classifier.save(chosen["save_model"], overwrite=chosen["force"])
    if chosen["report"] is not None and report.job is not None:
        title = Path(files[0]).name + (f" and {len(files) - 1} more" if files[1:] else "")
        page = report_sample(
            classifier, list(report.texts), report.rows, report.job, title=title, listener=progress
        )
        page.write(chosen["report"])


def _output(chosen: dict[str, Any]) -> Any:
    """Where the job writes."""
    from ulr.distributed.job import PartitionedOutput
    from ulr.errors import ClusterError
    from ulr.tables import format_of_name

    folder = chosen["output"]
    if folder is None or folder == "-" or format_of_name(folder) is not None:
        raise ClusterError("several workers write a folder; name one with -o, such as -o out/.")
    if chosen["part"] is not None and (chosen["cluster"] or chosen["workers"]):
        raise ClusterError("--part runs without a cluster; leave --cluster and --workers out.")
    return PartitionedOutput(
        folder, chosen["prefix"], chosen["force"], chosen["keep_vectors"], chosen["skip_broken"]
    )


def _note(sentence: str) -> None:
    print(f"ulr: {sentence}", file=sys.stderr)


def _print_report(report: PartitionsReport, as_json: bool) -> None:
    if as_json:
        print_json(report.as_dict())
    elif report.job is not None:
        print_summary(report.job)
    else:
        print("Other parts are not done yet.")
    for sentence in report.broken:
        _note(f"skipped: {sentence}")
    if not as_json:
        earlier = f", {report.resumed:,} were finished before" if report.resumed else ""
        print(f"{report.labelled:,} of {report.partitions:,} files were labelled{earlier}.")
