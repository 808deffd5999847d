"""Options of the classifier, and of texts beside those to classify."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from ulr.classifier import Settings
from ulr.cli.console import note
from ulr.cli.groups import ADVANCED, LABELS, REFINEMENT, option
from ulr.cli.options import note_no_effect
from ulr.cli.values import extra_labels_of, fit_sample_of, proportions_of, strong_share_of
from ulr.files import real_path

if TYPE_CHECKING:
    from ulr.cli.options import InputOptions
    from ulr.jobs import Documents, Support
    from ulr.progress import Progress


@dataclass(frozen=True)
class ClassifierOptions:
    """The settings of the classifier, and texts beside those to classify."""

    labels: Annotated[
        list[str],
        option(
            LABELS,
            "--labels",
            "-l",
            help="The labels: 'world, sports, business', or a .txt, .csv, .json or .yaml file. "
            "'name: phrase; phrase' gives other words for a name, 'sport > tennis' makes a tree. "
            "Repeated, they add up.",
        ),
    ]
    none_share: Annotated[
        float | None,
        option(
            LABELS,
            "--none",
            help="Share of the documents, such as 0.1, that get no label: those least similar to "
            "the name of theirs.",
        ),
    ] = Settings.none_share
    none_label: Annotated[str, option(LABELS, help="Label of documents that get no label.")] = (
        Settings.none_label
    )
    multilabel: Annotated[
        float | None,
        option(
            LABELS,
            "--multi",
            help="Several labels a document, in a column 'labels': those with at least this chance, "
            "such as 0.5, or so many on average, such as 1.8.",
        ),
    ] = None
    path_threshold: Annotated[
        float,
        option(
            LABELS,
            help="In a tree of labels ('sport > tennis', or nested .yaml or .json), a document goes "
            "down to the nodes that it belongs to with at least this probability.",
        ),
    ] = Settings.path_threshold
    encoder: Annotated[
        str,
        option(
            REFINEMENT,
            help="Turns texts into vectors; see 'ulr encoders'. 'auto' is the most accurate "
            "combination of what is installed.",
        ),
    ] = str(Settings.encoder)
    strong_share: Annotated[
        str,
        option(
            REFINEMENT,
            help="Above 200,000 words, a slow encoder reads a sample, and a student labels the "
            "others. Share of these, from 0 to 1, that the encoder reads as well, where the student "
            "is least sure; 'budget' for as many as 50,000 words allow. 'auto' is 'budget' for "
            "--encoder auto, and 1 otherwise.",
        ),
    ] = str(Settings.strong_share)
    method: Annotated[
        str,
        option(
            REFINEMENT,
            help="'discriminant' is the default; 'ulr' is the paper's; 'none' is the nearest label. "
            "'auto' is 'discriminant' for cosine and 'ulr' for other distances.",
        ),
    ] = Settings.method
    prior: Annotated[
        str,
        option(
            REFINEMENT,
            help="Sizes of the labels: 'estimate', 'balanced', or proportions such as "
            "'0.5, 0.3, 0.2'.",
        ),
    ] = Settings.prior
    examples: Annotated[
        str | None,
        option(REFINEMENT, help="File of some texts whose label is known, in a column 'label'."),
    ] = None
    fit_sample: Annotated[
        str,
        option(
            REFINEMENT,
            help="Most documents to fit on, a random sample of more; 'all' for no limit. 'auto' is "
            "200,000 for words and 16,384 of them (512 per label) for vectors; all for 'ulr'.",
        ),
    ] = str(Settings.fit_sample)
    template: Annotated[
        str,
        option(
            ADVANCED,
            help="A sentence around every phrase: 'News about {}.'; '{}' is the phrase alone. 'auto' "
            "is the mean of both for encoders of sentences.",
        ),
    ] = str(Settings.template)
    extra_labels: Annotated[
        str | None,
        option(
            ADVANCED,
            help="Further labels that take part and are never predicted: a file, 'math, physics', "
            "or 'stackexchange' for 30 Stack Exchange sites.",
        ),
    ] = Settings.extra_labels
    extra_texts: Annotated[
        str | None, option(ADVANCED, help="File of further texts to fit on, which get no label.")
    ] = None
    distance: Annotated[
        str,
        option(
            ADVANCED,
            help="'cosine', 'l2' or 'dot'; 'cosine' or 'jensen-shannon' for a cross encoder.",
        ),
    ] = Settings.distance
    max_iter: Annotated[int, option(ADVANCED, help="Most passes over the documents.")] = (
        Settings.max_iter
    )
    random_state: Annotated[
        int,
        option(
            ADVANCED,
            "--seed",
            help="Seed of everything that is drawn.",
            min=0,
        ),
    ] = Settings.random_state
    n_jobs: Annotated[
        int | None,
        option(ADVANCED, help="Threads of the refinement. Default: every available core."),
    ] = Settings.n_jobs
    cache: Annotated[
        str | None,
        option(
            ADVANCED, help="Folder for vectors, so that no text is encoded twice; see 'ulr cache'."
        ),
    ] = None

    def reads(self, name: str) -> bool:
        """Whether a file holds labels or texts of these options."""
        from ulr.labels import is_label_file

        own = (*self.labels, self.extra_labels, self.examples, self.extra_texts)
        return real_path(name) in {real_path(each) for each in own if each and is_label_file(each)}

    def settings(self, progress: Progress, **more: Any) -> Settings:
        """The settings of the classifier and further ones, with the encoder loaded."""
        from ulr.classifier import resolve
        from ulr.labels import labels_from_arguments

        if self.none_share is None and self.none_label != Settings.none_label:
            note_no_effect("--none-label", "without --none")
        labels = labels_from_arguments(self.labels)
        if labels.tree is None and self.path_threshold != Settings.path_threshold:
            note_no_effect("--path-threshold", "without a tree of labels")
        if self.method == "none" and self.max_iter != Settings.max_iter:
            note_no_effect("--max-iter", "with --method none")
        given = {
            each.name: getattr(self, each.name)
            for each in fields(Settings)
            if hasattr(self, each.name)  # a file has no y to ignore
        }
        given |= {
            "labels": labels,
            "multilabel": False if self.multilabel is None else self.multilabel,
            "prior": proportions_of(self.prior),
            "extra_labels": extra_labels_of(self.extra_labels),
            "fit_sample": fit_sample_of(self.fit_sample),
            "strong_share": strong_share_of(self.strong_share),
        }
        for each in given["labels"].notes:
            note(each)
        return resolve(Settings(**given | more), progress)

    def support(self, settings: Settings, inputs: InputOptions, documents: Documents) -> Support:
        """Labelled examples and further texts."""
        from ulr.jobs import read_support
        from ulr.tables import TableFormat, open_table

        with ExitStack() as files:
            tables = [
                None
                if name is None
                else files.enter_context(open_table(name, TableFormat(encoding=inputs.encoding)))
                for name in (self.examples, self.extra_texts)
            ]
            support = read_support(settings.label_set.names, documents.columns, *tables)
        if support.skipped:
            rows = "row" if support.skipped == 1 else "rows"
            print(
                f"ulr: {self.examples}: {support.skipped:,} {rows} without a label skipped.",
                file=sys.stderr,
            )
        return support
