"""Run the notebooks of the documentation and write their outputs: `python tools/notebooks.py`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))
_SECONDS = 300  # of a cell


def executed(path: Path, folder: Path) -> Any:
    """The notebook with the outputs of the present code, run in an empty copy of its surroundings."""
    place = folder / "docs" / "examples"
    place.mkdir(parents=True)
    shutil.copytree(ROOT / "examples", folder / "examples")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=_SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(place)}},
    ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def outputs(notebook: Any) -> list[str]:
    """What each cell of code prints and shows, as text."""
    return [
        "".join(
            each.get("text") or each.get("data", {}).get("text/plain") or each.get("evalue", "")
            for each in cell.outputs
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def main() -> None:
    """Run all notebooks."""
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), path)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
