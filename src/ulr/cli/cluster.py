"""`ulr classify --cluster`: many files, labelled by several workers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from ulr.cli import options
from ulr.cli.console import ProgressBar, plain_errors, print_json
from ulr.cli.summaries import print_summary

if TYPE_CHECKING:
    from ulr.distributed.job import PartitionsReport

_STOPPED = "finished files are kept, and the same command goes on with the others"


def classify_on_cluster(chosen: dict[str, Any]) -> None:
    """Run a job with the options of `ulr classify`, by the names of their parameters."""
    with plain_errors(_STOPPED):
        from ulr.distributed.executors import SerialExecutor, open_executor
        from ulr.distributed.job import classify_partitions, find_partitions, first_readable
        from ulr.persistence import load_model, refuse_to_save, save_model

        output, part = _output(chosen), options.share(chosen["part"])
        if chosen["save_model"] is not None:
            refuse_to_save(chosen["save_model"], chosen["force"])
        how = options.table_format(chosen)
        files = find_partitions(chosen["file"])
        first = first_readable(files, how, output.skip_broken)
        with (
            ProgressBar() as progress,
            options.open_inputs(chosen | {"file": [first]}, progress.preparing) as inputs,
            SerialExecutor()
            if part
            else open_executor(chosen["cluster"] or "local", chosen["workers"]) as executor,
        ):
            if executor.dashboard is not None:
                print(f"ulr: dashboard: {executor.dashboard}", file=sys.stderr)
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
        if chosen["save_model"] is not None:
            model, settings = load_model(report.model, inputs.classifier.encoder)
            save_model(model, chosen["save_model"], chosen["force"], settings)
        _print_report(report, chosen["json"])
        if report.broken:
            raise typer.Exit(1)


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
    if chosen["report"] is not None:
        raise ClusterError("--report reads all documents; run 'ulr report' on some of the files.")
    return PartitionedOutput(
        folder, chosen["prefix"], chosen["force"], chosen["keep_vectors"], chosen["skip_broken"]
    )


def _print_report(report: PartitionsReport, as_json: bool) -> None:
    if as_json:
        print_json(report.as_dict())
    elif report.job is not None:
        print_summary(report.job)
    else:
        print("Other parts are not done yet.")
    for sentence in report.broken:
        print(f"ulr: skipped: {sentence}", file=sys.stderr)
    if not as_json:
        earlier = f", {report.resumed:,} were finished before" if report.resumed else ""
        print(f"{report.labelled:,} of {report.partitions:,} files were labelled{earlier}.")
