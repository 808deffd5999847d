"""Make the pictures of docs/web.md and docs/report.md: `python tools/pictures.py`; needs Chromium."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from ulr.classifier import Settings
from ulr.cli.serve import listen
from ulr.jobs import Documents
from ulr.labels import read_labels
from ulr.report import report_documents
from ulr.tables import open_table
from ulr.web import ServerSettings, create_app

ROOT = Path(__file__).parent.parent
NEWS, LABELS = ROOT / "examples" / "news_blurbs.csv", ROOT / "examples" / "news_labels.txt"
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync"
)
ENCODER = "static"


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
    """The top of a report, and its map and table."""
    with open_table(str(NEWS)) as table:
        settings = Settings(read_labels(LABELS), encoder=ENCODER)
        documents = Documents(table, ("headline", "summary"))
        report_documents(documents, settings, truth_column="section")[2].write(path)
    page = new_page(browser, path.as_uri(), 1240, 900, "dark")
    page.wait_for_timeout(500)
    page.screenshot(path=ROOT / "docs" / "report-dark.png")
    page = new_page(browser, path.as_uri(), 1240, 900, "light")
    page.evaluate("document.getElementById('documents').scrollIntoView()")
    page.evaluate("ulrReport.store.setActive(160)")
    page.wait_for_timeout(500)
    page.screenshot(path=ROOT / "docs" / "report-light.png")


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
