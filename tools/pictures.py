"""Make the pictures of the documentation: `python tools/pictures.py`; needs Chromium."""

from __future__ import annotations

import base64
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from ulr.classifier import Settings
from ulr.cli.serve import listen
from ulr.jobs import Documents
from ulr.labels import read_labels
from ulr.report import ReportData, report_documents
from ulr.tables import open_table
from ulr.web import ServerSettings, create_app

ROOT = Path(__file__).parent.parent
NEWS, LABELS = ROOT / "examples" / "news_blurbs.csv", ROOT / "examples" / "news_labels.txt"
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync"
)
ENCODER = "auto"  # the default
COLORS = "#2f66c9 #d9630f #22874a #b8356f #7650c4".split()  # of labels, as on the map
OVERVIEW = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; font: 15px/1.4 system-ui, sans-serif; color: #1b1f27; background: #fff; }
main { display: grid; grid-template-columns: 1fr 390px 1fr; gap: 28px; width: 1152px;
    padding: 20px 24px; }
h2 { font-size: 17px; margin: 0 0 10px; }
img { width: 100%%; border: 1px solid #dde1e8; border-radius: 8px; }
p { margin: 0 0 9px; padding: 7px 10px; background: #f6f7f9; border-radius: 6px; font-size: 13.5px; }
b { display: inline-block; padding: 0 7px; margin: 0 1px 6px 0; border-radius: 9px; color: #fff;
    font-size: 13px; font-weight: 600; }
p b { margin: 0; } s, footer { color: #5a6170; }
</style><main>
<div><h2>%(n_labels)d names, %(n_texts)d texts, none labelled</h2>%(labels)s%(texts)s</div>
<div><h2>Refined on the texts; each dot is one</h2>
<img src="data:image/png;base64,%(map)s"></div>
<div><h2>Every text has a label</h2>%(labelled)s
<footer>%(before).1f %% right by name, %(after).1f %% refined</footer></div></main>"""


@contextmanager
def served() -> Iterator[str]:
    """The address of a server on a free port."""
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(
            uvicorn.Config(create_app(ServerSettings(encoder=ENCODER)), log_level="warning")
        )
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            time.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


def new_page(browser: Browser, address: str, width: int, height: int, scheme: str) -> Page:
    """A page of this size."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    return page


def picture_of_page(browser: Browser, address: str) -> None:
    """The page after one correction, with the words that decided on the next document."""
    page = new_page(browser, address, 1280, 1560, "light")
    page.get_by_role("button", name="Open the example").click()
    page.locator("[data-part=setup]").wait_for()
    page.locator("[data-part=run]").click()
    page.locator("[data-part=result]").wait_for()
    page.locator("[data-part=next]").click()
    page.keyboard.press("y")
    page.locator("[data-part=active-text] mark").first.wait_for()
    page.wait_for_timeout(500)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=ROOT / "docs" / "web.png")


def pictures_of_report(browser: Browser, path: Path) -> None:
    """The top of a report, its map and table, and the overview."""
    with open_table(str(NEWS)) as table:
        settings = Settings(read_labels(LABELS), encoder=ENCODER)
        documents = Documents(table, ("headline", "summary"))
        report = report_documents(documents, settings, truth_column="section")[2]
    report.write(path)
    page = new_page(browser, path.as_uri(), 1240, 900, "dark")
    page.wait_for_timeout(500)
    page.screenshot(path=ROOT / "docs" / "report-dark.png")
    page = new_page(browser, path.as_uri(), 1240, 900, "light")
    page.evaluate("document.getElementById('documents').scrollIntoView()")
    page.evaluate("ulrReport.store.setActive(0)")
    page.wait_for_timeout(500)
    page.screenshot(path=ROOT / "docs" / "report-light.png")
    page.evaluate("ulrReport.store.setActive(-1)")
    page.wait_for_timeout(500)
    drawn = page.locator(".map canvas").first.screenshot()
    page = new_page(browser, "about:blank", 1240, 900, "light")
    page.set_content(overview(report.data, base64.b64encode(drawn).decode()))
    page.locator("main").screenshot(path=ROOT / "docs" / "overview.png")


def overview(data: ReportData, drawn: str) -> str:
    """What goes in, the map, and what comes out, as a page."""
    shown, names = data.documents, [each.name for each in data.labels]
    sure = sorted(range(len(shown.row)), key=lambda i: -shown.confidence[i])
    moved = [i for i in sure if shown.label[i] != shown.unrefined[i]][:3]
    chosen = [
        next(i for i in sure if shown.label[i] == label and i not in moved) for label in (1, 2)
    ]
    chosen = [moved[0], chosen[0], moved[1], chosen[1], moved[2]]

    def chip(label: int) -> str:
        return f'<b style="background: {COLORS[label]}">{escape(names[label])}</b>'

    def first_words(i: int) -> str:
        return escape(" ".join(shown.text[i].split()[:11])) + " …"

    def answer(i: int) -> str:
        before = f"<s>{names[shown.unrefined[i]]}</s> → " if i in moved else ""
        return (
            f"<p>{before}{chip(shown.label[i])} {shown.confidence[i]:.2f}<br>{first_words(i)}</p>"
        )

    assert data.result.comparison is not None
    return OVERVIEW % {
        "n_labels": len(names),
        "n_texts": len(shown.row),
        "labels": "".join(map(chip, range(len(names)))),
        "texts": "".join(f"<p>{first_words(i)}</p>" for i in chosen),
        "map": drawn,
        "labelled": "".join(map(answer, chosen)),
        "before": 100 * data.result.comparison.before.accuracy,
        "after": 100 * data.result.comparison.after.accuracy,
    }


def main() -> None:
    """Make all pictures."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=OPTIONS.split()
        )
        with served() as address:
            picture_of_page(browser, address)
        pictures_of_report(browser, Path(folder) / "report.html")
        browser.close()


if __name__ == "__main__":
    main()
