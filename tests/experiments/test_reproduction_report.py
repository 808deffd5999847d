"""The report of the reproduction."""

import random
import re
from dataclasses import replace

import pytest

from ulr.experiments.datasets import DATASETS
from ulr.experiments.figure import gain_by_start
from ulr.experiments.paper import AVERAGE, EXPERIMENTS
from ulr.experiments.plan import CellKey, EncoderChoice, Encoders, cell_keys
from ulr.experiments.report import markdown_report
from ulr.experiments.results import Cell

STATIC = Encoders({"dual": [EncoderChoice("static")], "words": [EncoderChoice("glove")]})
ABOUT = {"encoder": "of a test", "stand_in": True, "documents": "whole test set", "rows": 1000}


def measured(key, stand_in=True, **more):
    """A cell with figures of its own."""
    draw = random.Random(str(key))
    before = tuple(draw.randrange(300, 600) for _ in range(20))
    after = tuple(each + draw.randrange(-20, 200) for each in before)
    steps = ("baseline", "ulr", "best", "discriminant")
    values = {name: round(100 * draw.random(), 4) for name in steps}
    improved = sum(b < a for a, b in zip(after, before, strict=True)), len(before)
    about = ABOUT | {"stand_in": stand_in, "sample": key.dataset in ("dbpedia14", "yahoo")}
    return Cell(key, {}, about, values | more, improved, before, after)


def cells_of(*experiments, encoders=STATIC):
    found = cell_keys([EXPERIMENTS[name] for name in experiments], encoders)
    return [measured(each) if each.encoder else Cell(each, not_run="none.") for each in found]


def rows_of(report, title):
    """The rows of a table, each a list of its fields."""
    section = report.partition(f"### {title}")[2].partition("###")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[field.strip() for field in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_printed_figure_has_a_row_that_is_compared_with_it(experiment):
    compared = {(distance, line.step) for distance, line in experiment.rows()}
    assert {(figure.distance, figure.step) for figure in experiment.figures} <= compared


def test_a_difference_is_ours_as_shown_less_the_papers():
    cells = cells_of("table-3")
    table = rows_of(markdown_report(cells), "Table 3")
    columns = EXPERIMENTS["table-3"].columns
    assert table[0][3:] == ["AG", "DBP (sample)", "Yahoo (sample)", "20NG", AVERAGE]
    paper, ours = table[2], table[3]
    assert paper[:3] == ["cosine", "by name", "the paper"]
    assert ours[2] == "`static`"
    values = {c.key.dataset: c.values["baseline"] for c in cells if is_baseline(c)}
    values[AVERAGE] = sum(values.values()) / 4
    for column, printed, shown in zip(columns, paper[3:], ours[3:], strict=True):
        figure, difference = re.fullmatch(r"(\S+) \((\S+)\)", shown).groups()
        assert figure == f"{values[column]:.1f}"
        wanted = float(figure) - float(printed)
        assert float(difference.replace("−", "-")) == pytest.approx(wanted)
        assert difference[0] in "+−" or difference == "0.0"


def is_baseline(cell):
    return (cell.key.measure, cell.key.distance) == ("names", "cosine")


def test_counts_are_shown_with_their_share():
    key = CellKey("random starts", "dual", "static", "agnews", "main", "cosine")
    cell = measured(key)
    cell = Cell(key, {}, cell.about, cell.values, (180, 240), cell.before, cell.after)
    table = rows_of(markdown_report([cell]), "Table 7")
    improved = next(row for row in table if row[1] == "improved")
    assert improved[3] == "239 of 240, 99.6"
    assert table[table.index(improved) + 1][3] == "180 of 240, 75.0 (−24.6)"


def test_an_average_needs_every_dataset():
    cells = cells_of("table-3")
    gone = next(each for each in cells if is_baseline(each) and each.key.dataset == "yahoo")
    cells[cells.index(gone)] = Cell(gone.key, not_run="yahoo is gone.")
    report = markdown_report(cells)
    ours = rows_of(report, "Table 3")[3]
    assert ours[5] == "not run"
    assert ours[-1] == "–"
    assert "Not run (by name, `static`: Yahoo Answers): yahoo is gone." in report


def test_the_order_of_the_cells_does_not_matter():
    encoders = Encoders(
        {"dual": [EncoderChoice("minilm"), EncoderChoice("hf:/a/b"), EncoderChoice("static")]}
    )
    cells = cells_of(*EXPERIMENTS, encoders=encoders)
    report = markdown_report(cells, None, "figure-2.png")
    assert "![" in report
    for seed in range(3):
        random.Random(seed).shuffle(cells)
        assert markdown_report(cells, None, "figure-2.png") == report
    assert report.index("| `static` |") < report.index("| `minilm` |") < report.index("| `hf:b` |")
    assert "/a/b" not in report


def test_tables_are_shown_whose_measurements_are_all_there():
    shown = re.findall(r"^### (\S+ \S+):", markdown_report(cells_of("table-9")), re.MULTILINE)
    assert shown == ["Table 3", "Table 9"]
    shown = re.findall(r"^### (.*?):", markdown_report(cells_of("table-6")), re.MULTILINE)
    assert shown == ["Table 6", "Figure 2", "The best names (an oracle)"]
    asked = markdown_report(cells_of("table-6"), [EXPERIMENTS["table-6"]])
    assert re.findall(r"^### (.*?):", asked, re.MULTILINE) == ["Table 6"]
    assert "oracle" not in asked


def test_stand_ins_are_named():
    cells = cells_of("table-7")
    note = "RoBERTa trained on NatCat was not run; it needs `--encoder hf:FOLDER`."
    assert f"{note} Stand-in: `static`." in markdown_report(cells)
    own = [CellKey(**vars(each.key) | {"encoder": "hf:/x/roberta"}) for each in cells]
    report = markdown_report([*cells, *(measured(each, stand_in=False) for each in own)])
    assert note not in report
    assert "used as the paper's RoBERTa trained on NatCat" in report


def test_a_missing_encoder_is_a_reason_only_until_one_was_given():
    missing = [
        Cell(each, not_run="give one.") for each in cell_keys([EXPERIMENTS["table-4"]], STATIC)
    ]
    report = markdown_report(missing)
    assert "Not run (by name: AG News, DBpedia, Yahoo Answers, 20 Newsgroups): give one." in report
    assert rows_of(report, "Table 4")[2][2:] == [
        "the paper",
        "72.6",
        "81.8",
        "59.3",
        "36.0",
        "62.4",
    ]
    given = [CellKey(**vars(each.key) | {"encoder": "cross:x"}) for each in missing]
    assert "give one." not in markdown_report([*missing, *map(measured, given)])


def test_an_encoder_may_be_for_one_distance_only():
    encoders = Encoders({"dual": [EncoderChoice("hf:dot", "cosine"), EncoderChoice("hf:l2", "l2")]})
    table = rows_of(markdown_report(cells_of("table-5", encoders=encoders)), "Table 5")
    assert [row[2] for row in table[2:]] == ["the paper", "`hf:dot`"] * 2 + [
        "the paper",
        "`hf:l2`",
    ] * 2


def test_the_report_states_how_many_texts_were_added():
    cells = cells_of("table-9")
    added = [replace(c, identity={"extra_texts": 1200}) for c in cells if "text" in c.key.measure]
    report = markdown_report([*cells, *added])
    assert "at most 100,000 per dataset: `static`: " in report
    assert "AG News 1,200" in report


def test_fine_tuned_encoders_share_a_row():
    tuned = {name: f"hf:{name}" for name in DATASETS}
    encoders = Encoders({"dual": [EncoderChoice("static")]}, tuned)
    report = markdown_report(cells_of("table-8", encoders=encoders))
    rows = [row for row in rows_of(report, "Table 8") if row[2] == "fine-tuned"]
    assert len(rows) == 2
    assert all("(" in field for row in rows for field in row[3:])
    assert "`hf:yahoo` | of a test | fine-tuned on 30 examples per label of Yahoo Answers" in report


def sweep(dataset, distance, improved, starts, gains):
    key = CellKey("sweep", "dual", "static", dataset, "main", distance)
    after = tuple(start + gain for start, gain in zip(starts, gains, strict=True))
    values = {"baseline": 1.0, "ulr": 2.0, "best": 3.0}
    return Cell(key, {}, ABOUT | {"sample": False}, values, improved, tuple(starts), after)


def test_the_findings_follow_the_figures():
    starts = [100, 200, 300, 400, 500, 600]
    cells = [
        sweep("agnews", "cosine", (209, 240), starts, [60, 50, 40, 30, 20, 10]),
        sweep("agnews", "l2", (200, 240), starts, [10, 20, 30, 40, 50, 60]),
        Cell(
            CellKey("random starts", "dual", "static", "agnews", "main", "l2"),
            {},
            ABOUT | {"sample": False},
            {"baseline": 30.0, "ulr": 75.0},
            (240, 240),
        ),
        measured(CellKey("names", "dual", "static", "agnews", "main", "l2"), ulr=80.0),
    ]
    report = markdown_report(cells)
    assert (
        "1. Refinement helps in as many cases as the paper counts in 1 of 2 sweeps, but not for AG "
        "News with L2 by `static` (200 of 240; the paper 237 of 240)." in report
    )
    assert (
        "2. The gain is larger where the start is worse in 1 of 2 sweeps, but not for AG News with "
        "L2 by `static` (correlation +1.00)." in report
    )
    assert (
        "3. Random starts improve in as many trials as reported in 1 of 1 cases; compared with "
        "refined label names they end below with L2 by `static` (75.0 against 80.0, not as "
        "reported)." in report
    )


def test_gains_are_measured_over_thirds():
    cell = sweep("agnews", "l2", (6, 6), [100, 300, 200, 600, 500, 400], [60, 40, 50, 10, 20, 30])
    gain = gain_by_start(cell)
    assert gain.correlation == pytest.approx(-1)
    assert (gain.worst, gain.best) == (pytest.approx(5.5), pytest.approx(1.5))
    still = gain_by_start(sweep("agnews", "l2", (0, 3), [100, 100, 100], [1, 2, 3]))
    assert still.correlation == 0
