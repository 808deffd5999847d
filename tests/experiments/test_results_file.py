"""The results file."""

import pytest

from ulr.errors import ExperimentError
from ulr.experiments.plan import CellKey
from ulr.experiments.results import Cell, Results


def key(dataset="agnews", measure="names"):
    return CellKey(measure, "dual", "static", dataset, "main", "cosine")


def cell(value=50.0, dataset="agnews", seed=1):
    return Cell(key(dataset), {"seed": seed}, {"rows": 4}, {"ulr": value}, seconds=0.5)


SWEEP = Cell(key(), {"seed": 1}, {"rows": 4}, {"ulr": 1.0}, (1, 2), (1, 2), (3, 0))


@pytest.mark.parametrize("each", [cell(), SWEEP, Cell(key(), not_run="no data.")])
def test_a_cell_comes_back_from_its_line_as_it_was(each):
    line = each.as_line()
    assert "\n" not in line
    assert Cell.of_line(line) == each


def add(path, *cells):
    with Results(path) as results:
        for each in cells:
            results.add(each)


def read(path):
    with Results(path) as results:
        return results.cells


def test_added_cells_are_read_again(tmp_path):
    path = tmp_path / "results.jsonl"
    add(path, cell(), cell(60.0, "yahoo"))
    with Results(path) as results:
        assert results.cells == [cell(), cell(60.0, "yahoo")]
        assert results.find(key(), {"seed": 1}) == cell()
        assert results.find(key(), {"seed": 2}) is None


def test_an_incomplete_last_line_is_removed(tmp_path):
    path = tmp_path / "results.jsonl"
    add(path, cell())
    whole = path.read_bytes()
    path.write_bytes(whole + cell(60.0, "yahoo").as_line().encode()[:40])
    assert read(path) == [cell()]
    assert path.read_bytes() == whole
    add(path, cell(60.0, "yahoo"))
    assert read(path) == [cell(), cell(60.0, "yahoo")]


def test_two_processes_cannot_write_the_same_file(tmp_path):
    path = tmp_path / "results.jsonl"
    with (
        Results(path),
        pytest.raises(ExperimentError, match="another 'ulr reproduce' is writing"),
    ):
        Results(path)
    assert read(path) == []


@pytest.mark.parametrize("line", ["{", "[]", '{"measure": "names"}', "1", "\udce4"])
def test_a_line_that_is_no_cell_is_refused(tmp_path, line):
    path = tmp_path / "results.jsonl"
    content = f"{cell().as_line()}\n{line}\n{cell().as_line()}\n"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ExperimentError, match=r"results\.jsonl line 2 is not a result of"):
        Results(path)


def test_a_cell_is_written_once(tmp_path):
    path = tmp_path / "results.jsonl"
    each = [cell(), Cell(key("yahoo"), not_run="no data.")]
    for _ in range(2):
        add(path, *each, *each)
    assert len(path.read_bytes().splitlines()) == 2


def test_the_last_added_cell_is_the_latest(tmp_path):
    path = tmp_path / "results.jsonl"
    add(path, cell(50.0, seed=1), cell(60.0, seed=2), cell(50.0, seed=1))
    assert read(path) == [cell(50.0, seed=1)]


def test_figures_replace_a_reason_but_not_vice_versa(tmp_path):
    path, reason = tmp_path / "results.jsonl", Cell(key(), not_run="no data.")
    add(path, reason)
    assert read(path) == [reason]
    add(path, cell(), reason)
    assert read(path) == [cell()]
