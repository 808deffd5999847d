"""The page in a real browser, from an upload to the downloads."""

import csv
import io
import json
import time

import pytest

from browsing import assert_accessible, select_region, selected
from tiny_task import LABELS

pytestmark = pytest.mark.browser


@pytest.fixture
def open_page(browser, server):
    """Open the page; nothing may be logged, and nothing requested from elsewhere."""
    contexts, complaints, requests, expected = [], [], [], []

    def open_page(address="", errors=(), **options):
        options = {"viewport": {"width": 1300, "height": 900}} | options
        contexts.append(browser.new_context(**options))
        expected.extend(errors)
        page = contexts[-1].new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(server + address)
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    unexpected = [each for each in complaints if not any(part in each for part in expected)]
    assert unexpected == []
    assert [url for url in requests if not url.startswith((server, "blob:"))] == []


def settled(page):
    page.wait_for_selector("body:not([data-busy])")
    page.wait_for_selector("[data-part=result]:visible")


def upload(page, table, labels=LABELS):
    file = {"name": "notes.csv", "mimeType": "text/csv", "buffer": table}
    page.set_input_files("[data-part=file]", file)
    page.wait_for_selector("[data-part=setup]:visible")
    for i, label in enumerate(labels, 1):
        page.get_by_label(f"Name of label {i}").fill(label)


def classify(page):
    number = page.evaluate("window.ulrPage?.view.number ?? 0")
    page.locator("[data-part=run]").click()
    wait_for(page, f"window.ulrPage?.page.result.view.number === {number + 1}")
    settled(page)


def wait_for(page, condition):
    """Wait until an expression is true; the policy of the page forbids Playwright's own way."""
    limit = time.monotonic() + 15
    while not page.evaluate(condition):
        assert time.monotonic() < limit, condition
        page.wait_for_timeout(20)


@pytest.fixture
def page(open_page, server, new_person, table):
    """The page with a result."""
    httpx = pytest.importorskip("httpx")
    with httpx.Client(base_url=server) as client:
        person = new_person(client, table)
        person.classify()
    return open_page(f"#session={person.info['id']}")


def test_the_whole_path_from_upload_to_downloads_with_markup_that_stays_text(
    open_page, table, documents
):
    page = open_page()
    label = "<img src=x onerror='window.attacked = 3'> science"
    upload(page, table, [*LABELS[:2], label])
    assert page.get_by_label("note", exact=True).is_checked()
    assert not page.get_by_label("id", exact=True).is_checked()
    classify(page)
    assert selected(page) == list(range(len(documents.texts)))
    page.locator("canvas").focus()
    page.keyboard.press("n")
    page.keyboard.press("1")
    page.wait_for_selector("[data-part=refine]:enabled")
    files = {}
    for name in ("Table", "Label file", "Corrected examples", "Model", "Report"):
        with page.expect_download() as event:
            page.get_by_role("link", name=name, exact=True).click()
        files[event.value.suggested_filename] = event.value.path().read_bytes()
    assert set(files) == {
        "notes-labelled.csv",
        "notes-labels.yaml",
        "notes-examples.csv",
        "notes-model.zip",
        "notes-report.html",
    }
    rows = list(csv.DictReader(io.StringIO(files["notes-labelled.csv"].decode())))
    shown = page.evaluate("ulrPage.store.documents.label.map(i => ulrPage.store.labels[i].name)")
    assert [row["note"] for row in rows] == documents.texts
    assert [row["ulr_label"] for row in rows] == shown
    (example,) = csv.DictReader(io.StringIO(files["notes-examples.csv"].decode()))
    assert example["label"] == "sports"
    assert page.evaluate("window.attacked") is None
    assert page.locator("img").count() == 0
    assert label in page.locator("[data-part=legend]").inner_text()
    for text in documents.texts[-2:]:
        page.fill("input[name=words]", text)
        assert page.locator("table.documents td.text").all_inner_texts() == [text]


def test_texts_can_be_pasted_and_the_example_is_one_click_away(open_page):
    page = open_page()
    page.get_by_label("Or paste texts").fill("a late goal\nshares fell\nthe striker scored\n")
    page.get_by_role("button", name="Use these texts").click()
    page.wait_for_selector("[data-part=setup]:visible")
    assert "3 rows" in page.locator("[data-part=data-summary]").inner_text()
    for i, label in enumerate(("sports", "business"), 1):
        page.get_by_label(f"Name of label {i}").fill(label)
    classify(page)
    assert selected(page) == [0, 1, 2]
    page = open_page()
    page.get_by_role("button", name="Open the example").click()
    page.wait_for_selector("[data-part=setup]:visible")
    classify(page)
    assert len(selected(page)) == 341


def test_an_edited_label_shows_what_it_changes(page):
    before = page.evaluate("ulrPage.store.documents.label")
    page.get_by_label("Name of label 2").fill("laboratory")
    classify(page)
    names = page.evaluate("ulrPage.store.labels.map(label => label.name)")
    assert names == ["sports", "laboratory", "science and technology"]
    assert "laboratory" in page.locator("[data-part=legend]").inner_text()
    after = page.evaluate("ulrPage.store.documents.label")
    changed = [i for i, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    assert changed
    said = page.locator("[data-part=changed]").inner_text()
    assert f"gave {len(changed)} documents another label" in said
    page.get_by_label("changed by the last run").check()
    assert selected(page) == changed
    page.locator("[data-part=undo]").click()
    wait_for(page, "ulrPage.page.result.view.number === 3")
    settled(page)
    assert page.get_by_label("Name of label 2").input_value() == "business"
    assert page.evaluate("ulrPage.store.documents.label") == before


def corrected(page, *documents):
    """Whether exactly these documents have a correction, after the server has answered."""
    rows = json.dumps(sorted(documents))
    wait_for(page, f"{rows}.every(i => ulrPage.store.documents.corrected[i])")
    flags = page.evaluate("ulrPage.store.documents.corrected")
    return [i for i, flag in enumerate(flags) if flag] == sorted(documents)


def test_a_digit_in_the_table_corrects_and_goes_on_and_u_returns(page):
    page.locator("table.documents tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    row = page.evaluate("ulrPage.store.active")
    before = page.evaluate("ulrPage.store.documents.label")
    other = (before[row] + 1) % 3
    page.keyboard.press(str(other + 1))
    assert page.evaluate("ulrPage.store.active") == page.evaluate("ulrPage.table.onPage()[2]")
    assert corrected(page, row)
    assert page.evaluate(f"ulrPage.store.documents.label[{row}]") == other
    assert "corrected" in page.locator(f"tr[data-document='{row}']").inner_text()
    assert "1 corrected; 1 changed" in page.locator("[data-part=check-status]").inner_text()
    assert f"is now {LABELS[other]}" in page.locator("[data-part=said]").inner_text()
    page.keyboard.press("u")
    wait_for(page, f"!ulrPage.store.documents.corrected[{row}]")
    assert page.evaluate("ulrPage.store.active") == row
    assert page.evaluate("ulrPage.store.documents.label") == before
    assert page.locator("[data-part=undo]").is_disabled()
    page.locator("input[name=words]").press_sequentially("u1")  # while somebody types, no keys
    assert page.locator("input[name=words]").input_value() == "u1"
    assert corrected(page)


def test_checking_takes_one_key_for_each_document(page):
    page.set_viewport_size({"width": 400, "height": 800})
    page.evaluate("document.activeElement.blur()")
    # The page hears of it as late as an observer that is made now.
    seen = """(wanted) => new Promise((done) => {
      const panel = document.querySelector("[data-part=panel]");
      const tell = (found) => found.at(-1).isIntersecting === wanted && done();
      new IntersectionObserver(tell).observe(panel);
      if (wanted) panel.scrollIntoView({ block: "nearest" });
    })"""
    page.evaluate(seen, False)
    page.keyboard.press("n")  # nothing, since the section is not visible
    assert page.evaluate("ulrPage.store.active") == -1
    page.evaluate(seen, True)
    assert page.locator(".keys").is_visible()
    order = page.evaluate("ulrPage.view.next")
    fitted = page.evaluate("ulrPage.store.documents.label")
    page.keyboard.press("n")
    page.keyboard.press("n")  # skips the first one
    for key in "12yx":  # as fast as they are pressed
        page.keyboard.press(key)
    assert page.evaluate("ulrPage.store.active") == order[5]
    assert corrected(page, *order[1:5])
    labels = page.evaluate("ulrPage.store.documents.label")
    assert [labels[i] for i in order[1:5]] == [0, 1, fitted[order[3]], -1]
    page.evaluate(f"ulrPage.store.setActive({order[4]}, true)")
    assert "none of these" in page.locator("tr.active").inner_text()
    page.keyboard.press("u")
    wait_for(page, f"!ulrPage.store.documents.corrected[{order[4]}]")
    assert page.evaluate("ulrPage.store.active") == order[4]
    assert corrected(page, *order[1:4])
    page.keyboard.press("x")
    page.keyboard.press("r")
    wait_for(page, "ulrPage.page.result.view.number === 2")
    settled(page)
    assert page.evaluate(f"ulrPage.store.documents.label[{order[4]}]") == -1
    page.get_by_label("Keys:").uncheck()
    active = page.evaluate("ulrPage.store.active")
    page.keyboard.press("1")
    assert page.evaluate("ulrPage.store.active") == active
    assert corrected(page, *order[1:5])


def test_corrections_take_part_in_the_next_run(page):
    page.locator("canvas").focus()
    given = {}
    page.keyboard.press("n")
    for _ in range(3):
        i = page.evaluate("ulrPage.store.active")
        assert i not in given
        given[i] = (page.evaluate(f"ulrPage.store.documents.label[{i}]") + 1) % 3
        page.keyboard.press(str(given[i] + 1))
    assert corrected(page, *given)
    assert list(given) == page.evaluate("ulrPage.view.next.slice(0, 3)")
    page.keyboard.press("r")
    wait_for(page, "ulrPage.page.result.view.number === 2")
    settled(page)
    for i, label in given.items():
        assert page.evaluate(f"ulrPage.page.result.fitted[{i}]") == label
    page.get_by_label("corrected", exact=True).check()
    assert selected(page) == sorted(given)
    assert set(page.evaluate("ulrPage.page.result.view.next")).isdisjoint(given)


def test_words_that_decided_are_marked_and_suggestions_are_added_with_one_click(page):
    page.locator("[data-part=next]").click()
    page.locator("[data-part=active-text] mark").first.wait_for()
    marked = page.locator("[data-part=active-text] mark").all_inner_texts()
    line = page.locator("[data-part=why]").inner_text()
    assert all(word.lower() in line.lower() for word in marked)
    page.get_by_text("Suggestions for the labels").click()
    page.locator("[data-part=suggest]").click()
    page.locator("[data-part=suggested] button").first.wait_for()
    before = page.evaluate(
        "[...document.querySelectorAll('.labels input')].map(each => each.value)"
    )
    page.locator("[data-part=suggested] button").first.click()
    after = page.evaluate("[...document.querySelectorAll('.labels input')].map(each => each.value)")
    assert before != after
    assert "Classify again" in page.locator("[data-part=labels-read]").inner_text()
    classify(page)
    assert page.locator("[data-part=suggested] button").count() == 0


def test_labels_are_pasted_typed_or_uploaded_as_a_list_and_options_are_chosen(open_page, table):
    page = open_page(errors=["400 (Bad Request)"])
    upload(page, table, [])
    names = "[...document.querySelectorAll('.labels li')].map(li => li.children[1].value)"
    page.evaluate(
        """() => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text", "sports, weather, food");
          const options = { clipboardData, bubbles: true, cancelable: true };
          document.querySelector(".labels input").dispatchEvent(new ClipboardEvent("paste", options));
        }"""
    )
    wait_for(page, f"{names}.join() === 'sports,weather,food'")
    page.get_by_text("Paste or upload a list of labels").click()
    page.get_by_label("List of labels").fill("business: bank; money\nsports: football, tennis\n")
    page.get_by_role("button", name="Add these labels").click()
    wait_for(page, f"{names}.join() === 'sports,weather,food,business'")
    assert page.get_by_label("Phrases of label 1").input_value() == "football; tennis"
    assert page.get_by_label("Phrases of label 4").input_value() == "bank; money"
    page.get_by_text("Paste or upload a list of labels").click()
    for content, name in ((b"\xff", "a.txt"), (b"a: [", "a.yaml")):
        file = {"name": name, "mimeType": "text/plain", "buffer": content}
        page.set_input_files("[data-part=label-file]", file)
        page.locator("[role=alert]").get_by_text(name).wait_for()
    file = {
        "name": "a.yaml",
        "mimeType": "text/yaml",
        "buffer": b"science: [physics]\nsports: [tennis]\n",
    }
    page.set_input_files("[data-part=label-file]", file)
    wait_for(page, f"{names}.join() === 'sports,weather,food,business,science'")
    for _ in range(5):
        page.get_by_label("Remove label 1").click()
    page.get_by_label("Name of label 1").fill(", ".join(LABELS))
    page.get_by_text("Options:").click()
    page.get_by_label("Documents without a label").fill("25")
    classify(page)
    names = page.evaluate("ulrPage.store.labels.map(label => label.name)")
    assert names == [*LABELS, "none of these"]
    none = page.evaluate("ulrPage.view.result.without_label")
    assert none == pytest.approx(0.25 * page.evaluate("ulrPage.store.documents.row.length"), abs=2)
    assert page.get_by_label("Name of label 4").count() == 0
    page.get_by_label("Encoder").select_option("auto")
    assert "auto encoder, 25% none of these" in page.locator("[data-part=options]").inner_text()


def test_a_corrected_document_leaves_the_filter_and_a_reload_keeps_it(page):
    page.locator("[data-part=legend] button").nth(0).click()
    page.locator("table.documents tbody tr").nth(1).click()
    first, second, third = page.evaluate("ulrPage.table.onPage().slice(0, 3)")
    page.keyboard.press("2")
    wait_for(page, f"ulrPage.store.documents.corrected[{second}]")
    wait_for(page, f"ulrPage.store.active === {third}")
    assert page.evaluate("ulrPage.table.onPage().slice(0, 2)") == [first, third]
    label = page.evaluate("ulrPage.store.documents.label")
    page.wait_for_timeout(400)
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate("ulrPage.store.documents.label") == label
    assert page.get_by_label("Name of label 1").input_value() == LABELS[0]


def test_a_link_shows_the_same(page, open_page):
    page.locator("[data-part=legend] button").nth(0).click()
    page.locator("input[name=high]").fill("95")
    page.select_option("select[name=by]", "unrefined")
    select_region(page, 0.6, steps=30)
    page.get_by_role("columnheader", name="Confidence").get_by_role("button").click()
    shown = selected(page)
    assert 0 < len(shown) < page.evaluate("ulrPage.store.documents.row.length")
    page.locator("table.documents tbody tr").nth(1).click()
    page.wait_for_timeout(400)
    other = open_page("#" + page.url.partition("#")[2])
    assert selected(other) == shown
    for state in ("store.filter", "store.sort", "store.active", "store.shown"):
        assert other.evaluate(f"ulrPage.{state}") == page.evaluate(f"ulrPage.{state}")
    session = page.evaluate("ulrPage.page.session.id")
    nonsense = "&low=x&high=7&by=y&sort=z&region=1,2;a&label=nothing&only=q&row=99999"
    other = open_page(f"#session={session}{nonsense}")
    assert len(selected(other)) == page.evaluate("ulrPage.store.documents.row.length")


def test_errors_are_shown_and_can_be_corrected(open_page, table):
    page = open_page(errors=["400 (Bad Request)"])
    alert = page.locator("[role=alert]")
    picture = {"name": "a.csv", "mimeType": "text/csv", "buffer": b"\x89PNG\r\n\x1a\n"}
    page.set_input_files("[data-part=file]", picture)
    alert.wait_for(state="visible")
    assert "PNG picture" in alert.inner_text()
    large = {"name": "b.csv", "mimeType": "text/csv", "buffer": b"x" * (3 << 20)}
    page.set_input_files("[data-part=file]", large)
    wait_for(page, "document.querySelector('[role=alert]').innerText.includes('at most 2 MB')")
    upload(page, table, ["sports"])
    assert alert.is_hidden()
    page.locator("[data-part=run]").click()
    alert.wait_for(state="visible")
    assert "at least 2 labels" in alert.inner_text()
    page.get_by_label("Name of label 2").fill("business")
    classify(page)
    assert alert.is_hidden()
    page = open_page("#session=unknown", errors=["404 (Not Found)"])
    assert "has ended" in page.locator("[role=alert]").inner_text()
    assert page.locator("[data-part=start]").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_is_accessible_and_fits_every_width(page, open_page, table, scheme):
    address = "#session=" + page.evaluate("ulrPage.page.session.id")
    other = open_page(viewport={"width": 360, "height": 800}, color_scheme=scheme)
    assert_accessible(other, 360)
    upload(other, table)
    assert_accessible(other, 360)
    other = open_page(address, color_scheme=scheme)
    other.get_by_text("Suggestions for the labels").click()
    other.locator("[data-part=suggest]").click()
    other.locator("[data-part=suggested] button").first.wait_for()
    other.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    for width in (360, 768, 1440):
        other.set_viewport_size({"width": width, "height": 800})
        other.locator("[data-part=next]").click()
        other.locator("[data-part=active-text] mark").first.wait_for()
        assert_accessible(other, width)
