"""`ulr classify --cluster`: many files, labelled by several workers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ulr.cli.classifier_options import ClassifierOptions
from ulr.cli.console import ProgressBar, note, plain_errors, print_json
from ulr.cli.groups import CLUSTER, option
from ulr.cli.options import InputOptions, OutputOptions
from ulr.cli.summaries import print_summary
from ulr.errors import ClusterError

if TYPE_CHECKING:
    from ulr.distributed import PartitionsResult

_STOPPED = "finished files are kept, and the same command goes on with the others"


@dataclass(frozen=True)
class ClusterOptions:
    """Several workers."""

    cluster: Annotated[
        str | None,
        option(
            CLUSTER,
            "--cluster",
            help="'local' for processes of this machine, or the address of a Dask scheduler. Files "
            "are the units of work; -o is a folder. A stopped run goes on.",
        ),
    ] = None
    workers: Annotated[
        int | None,
        option(CLUSTER, "--workers", help="Local processes. Default: one per core.", min=1),
    ] = None
    part: Annotated[
        str | None,
        option(
            CLUSTER,
            "--part",
            help="A share of the files without a cluster: '0/8' samples and fits, '1/8' to '8/8' "
            "label.",
        ),
    ] = None
    keep_vectors: Annotated[
        str | None,
        option(
            CLUSTER,
            "--keep-vectors",
            help="Folder for the vectors of the texts, float16 in one .npy file per input.",
        ),
    ] = None
    skip_broken: Annotated[
        bool,
        option(
            CLUSTER,
            "--skip-broken",
            help="Go on without files that cannot be read, and list them.",
        ),
    ] = False


def needs_cluster(inputs: InputOptions, output: OutputOptions, cluster: ClusterOptions) -> bool:
    """Whether the options are those of several workers; only they write to addresses."""
    names = (*inputs.file, output.output or "")
    return cluster != ClusterOptions() or any("://" in name for name in names)


def classify_on_cluster(
    inputs: InputOptions,
    classifier: ClassifierOptions,
    output: OutputOptions,
    cluster: ClusterOptions,
    save_model: str | None,
    report: str | None,
    as_json: bool,
) -> None:
    """Run `ulr classify` with several workers."""
    with plain_errors(_STOPPED):
        from ulr.classifier import check_model_folder, save
        from ulr.distributed import classify_partitions, find_partitions, open_first, open_workers
        from ulr.report import check_report_path, report_sample
        from ulr.tables import format_of_name

        folder, part = _folder(output, cluster), _part(cluster.part)
        if save_model is not None:
            check_model_folder(save_model, output.force)
        if report is not None:
            check_report_path(report, output.force)
        files, how = find_partitions(inputs.file), inputs.table_format
        if not inputs.lines and any(
            (how.format or format_of_name(each)) == "txt" for each in files
        ):
            note(
                "every line of the .txt files is a document; without a cluster, every file is one."
            )
        first = inputs.documents(open_first(files, how, cluster.skip_broken))
        engine = None if part else cluster.cluster or "local"
        with ProgressBar() as progress, open_workers(engine, cluster.workers) as workers:
            workers.on_refused = note
            if workers.n_workers < (cluster.workers or 1):
                note(f"{workers.n_workers} workers are started; this machine has no use for more.")
            if workers.dashboard is not None:
                note(f"dashboard: {workers.dashboard}")
            settings = classifier.settings(progress)
            fitted, result = classify_partitions(
                files,
                first,
                settings,
                folder,
                workers,
                progress,
                support=classifier.support(settings, inputs, first),
                how=how,
                prefix=output.prefix,
                vectors=cluster.keep_vectors,
                force=output.force,
                skip_broken=cluster.skip_broken,
                part=part,
            )
            if save_model is not None:
                save(fitted, save_model, overwrite=output.force)
            if report is not None and result.job is not None:
                title = Path(files[0]).name + (f" and {len(files) - 1} more" if files[1:] else "")
                found = fitted, result.texts, result.rows, result.job
                report_sample(*found, title=title, progress=progress).write(report)
        _print_result(result, as_json)
        if result.broken:
            raise typer.Exit(1)


def _folder(output: OutputOptions, cluster: ClusterOptions) -> str:
    """The output folder, after checks of options that do not go together."""
    from ulr.tables import format_of_name

    folder = output.output
    if folder is None or folder == "-" or format_of_name(folder) is not None:
        raise ClusterError("several workers write a folder; name one with -o, such as -o out/.")
    if cluster.part is not None and (cluster.cluster or cluster.workers):
        raise ClusterError("--part runs without a cluster; leave --cluster and --workers out.")
    return folder


def _part(value: str | None) -> tuple[int, int] | None:
    """The two numbers of ``--part``."""
    if value is None:
        return None
    first, _, second = value.partition("/")
    if not (first.isdecimal() and second.isdecimal()) or not int(first) <= int(second) > 0:
        raise ClusterError(
            f"--part must be a share such as 2/8, or 0/8 to fit; got {value[:40]!r}."
        )
    return int(first), int(second)


def _print_result(result: PartitionsResult, as_json: bool) -> None:
    for sentence in result.broken:
        note(f"skipped: {sentence}")
    if as_json:
        print_json(result.as_dict())
        return
    if result.job is not None:
        print_summary(result.job)
    else:
        print("Other parts are not done yet.")
    earlier = f", {result.resumed:,} were finished before" if result.resumed else ""
    print(f"{result.labelled:,} of {result.partitions:,} files were labelled{earlier}.")
