"""The page in a real browser: filters, map, table and keyboard agree, and texts stay texts."""

import re
from importlib.resources import files

import pytest

ALL_PAGES = """() => {
  const { table } = ulrReport, rows = [];
  for (let page = 0; page < table.pages(); page++) {
    table.turn(page);
    rows.push(...table.onPage());
  }
  table.turn(0);
  return rows;
}"""


@pytest.fixture
def page(open_page, report_path):
    return open_page(report_path, viewport={"width": 1300, "height": 900})


def selected(page):
    """The documents that the map has drawn in colour and the pages of the table list."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    on_map, in_table = page.evaluate("ulrReport.map.drawn()"), page.evaluate(ALL_PAGES)
    assert sorted(on_map) == sorted(in_table)
    status = page.locator("[data-part=status]").inner_text()
    assert status.startswith(f"{len(on_map)} of ")
    return sorted(on_map)


def matching(report, condition):
    documents = report.data.documents
    return [i for i in range(len(documents.row)) if condition(documents, i)]


def test_all_documents_with_a_label_are_shown_at_first(page, report):
    assert selected(page) == list(range(len(report.data.documents.row)))


def test_the_texts_of_a_page_of_the_table_are_the_documents(page, report):
    rows = page.evaluate("ulrReport.table.onPage()")
    texts = page.locator("table.documents td.text").all_inner_texts()
    assert len(rows) == 25
    assert texts == [report.data.documents.text[i] for i in rows]


def test_markup_in_documents_stays_text(page, hostile):
    assert page.evaluate("window.attacked") is None
    assert page.locator("img").count() == 0
    for text in hostile:
        page.fill("input[name=words]", text)
        assert page.locator("table.documents td.text").all_inner_texts() == [text]
    assert page.title().startswith("A <title> & more")


def test_words_must_all_occur_in_any_case(page, report):
    page.fill("input[name=words]", "GOAL coach")
    expected = matching(report, lambda d, i: "goal" in d.text[i] and "coach" in d.text[i])
    assert expected
    assert selected(page) == expected
    marks = page.locator("table.documents mark").all_inner_texts()
    assert {mark.lower() for mark in marks} == {"goal", "coach"}


def test_labels_filter_and_combine(page, report):
    buttons = page.locator("[data-part=legend] button")
    buttons.nth(0).click()
    assert selected(page) == matching(report, lambda d, i: d.label[i] == 0)
    buttons.nth(2).click()
    assert buttons.nth(2).get_attribute("aria-pressed") == "true"
    assert selected(page) == matching(report, lambda d, i: d.label[i] in (0, 2))
    page.select_option("select[name=by]", "truth")
    assert selected(page) == matching(report, lambda d, i: d.truth[i] in (0, 2))


def test_confidence_and_moves_filter(page, report):
    page.locator("input[name=low]").fill("60")
    page.locator("input[name=high]").fill("90")
    expected = matching(report, lambda d, i: 0.6 <= d.confidence[i] <= 0.9)
    assert 0 < len(expected) < len(report.data.documents.row)
    assert selected(page) == expected
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("moved by refinement").check()
    assert selected(page) == matching(report, lambda d, i: d.label[i] != d.unrefined[i])
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("wrong").check()
    assert selected(page) == matching(report, lambda d, i: d.truth[i] not in (-1, d.label[i]))


def test_no_match_is_said(page):
    page.fill("input[name=words]", "zzzz")
    assert selected(page) == []
    assert "No document matches" in page.locator("table.documents").inner_text()


def test_a_region_of_the_map_selects_the_documents_in_it(page, report):
    canvas = page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.get_by_role("button", name="Select region").click()
    left, top = box["x"] + 3, box["y"] + 3
    right, bottom = box["x"] + box["width"] / 2, box["y"] + box["height"] - 3
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom)):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    middle = box["width"] / 2
    places = page.evaluate("ulrReport.data.documents.row.map((_, i) => ulrReport.map.placeOf(i))")
    expected = [i for i, (x, _) in enumerate(places) if x < middle]
    assert 0 < len(expected) < len(places)
    assert selected(page) == expected
    canvas.press("Escape")
    assert len(selected(page)) == len(places)


def test_hover_shows_the_text_and_a_click_turns_the_table_to_it(page, report):
    last = len(report.data.documents.row) - 1
    canvas = page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    x, y = page.evaluate(f"ulrReport.map.placeOf({last})")
    canvas.hover(position={"x": x, "y": y})
    active = page.evaluate("ulrReport.store.active")
    page.wait_for_function("!document.querySelector('.tooltip').hidden")
    assert page.locator(".tooltip span").inner_text() == report.data.documents.text[active]
    canvas.click(position={"x": x, "y": y})
    assert active in page.evaluate("ulrReport.table.onPage()")
    assert page.locator("tr.active").get_attribute("data-document") == str(active)


def test_keys_move_zoom_and_clear_on_the_map(page, report):
    canvas = page.locator("canvas")
    canvas.focus()
    canvas.press("ArrowRight")
    first = page.evaluate("ulrReport.store.active")
    canvas.press("ArrowRight")
    second = page.evaluate("ulrReport.store.active")
    x = [page.evaluate(f"ulrReport.map.placeOf({i})")[0] for i in (first, second)]
    assert first >= 0
    assert x[1] > x[0]
    assert report.data.documents.text[second] in page.locator("[data-part=live]").inner_text()
    canvas.press("Enter")
    assert second in page.evaluate("ulrReport.table.onPage()")
    canvas.press("+")
    assert page.evaluate("ulrReport.map.view.zoom") == pytest.approx(1.5)
    canvas.press("0")
    assert page.evaluate("ulrReport.map.view.zoom") == 1
    canvas.press("Escape")
    assert page.evaluate("ulrReport.store.active") == -1


def test_keys_move_in_the_table_and_the_map_follows(page):
    page.locator("table.documents tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    on_page = page.evaluate("ulrReport.table.onPage()")
    assert page.evaluate("ulrReport.store.active") == on_page[2]


def test_the_table_sorts_and_turns_pages(page, report):
    page.get_by_role("columnheader", name="Confidence").get_by_role("button").click()
    confidence = report.data.documents.confidence
    shown = page.evaluate(ALL_PAGES)
    assert [confidence[i] for i in shown] == sorted(confidence)
    page.get_by_role("button", name="Next page").click()
    assert page.evaluate("ulrReport.table.onPage()") == shown[25:50]


def test_pixels_of_a_document_have_the_colour_of_its_label(page, report):
    page.get_by_role("button", name="Label paths").click()
    page.fill("input[name=words]", "goal coach")
    shown = selected(page)
    code = """(i) => {
      const canvas = document.querySelector("canvas"), [x, y] = ulrReport.map.placeOf(i);
      const ratio = canvas.width / canvas.clientWidth;
      return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data];
    }"""
    tags = page.locator("[data-part=legend] .tag")
    label = report.data.documents.label[shown[0]]
    wanted = tags.nth(label).evaluate("tag => tag.style.getPropertyValue('--color')")
    wanted = [int(wanted[at : at + 2], 16) for at in (1, 3, 5)]
    assert page.evaluate(code, shown[0])[:3] == pytest.approx(wanted, abs=3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1440])
def test_no_serious_accessibility_findings_and_no_sideways_scrolling(
    open_page, report_path, scheme, width
):
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(report_path, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


def test_the_page_prints(open_page, report_path):
    page = open_page(report_path, color_scheme="dark")
    assert page.pdf(format="A4")[:5] == b"%PDF-"
    color = "document.querySelector('.tag').style.getPropertyValue('--color')"
    on_screen = page.evaluate(color)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(color) != on_screen
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(color) == on_screen
    page.emulate_media(media="print")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(255, 255, 255)"


def test_the_parts_also_work_as_separate_modules(browser, report):
    """Joined in one script, a part would work without its imports."""
    page = re.sub(r"<meta http-equiv=[^>]*>", "", report.html)
    start = page.index('<script type="module">')
    end = page.index("</script>", start)
    page = page[:start] + '<script type="module" src="/report.js">' + page[end:]
    loaded, complaints = [], []

    def serve(route):
        name = route.request.url.removeprefix("http://localhost/")
        loaded.append(name)
        if name.endswith(".js"):
            script = (files("ulr.report") / "static" / name).read_text("utf-8")
            route.fulfill(body=script, content_type="text/javascript")
        else:
            route.fulfill(body=page, content_type="text/html")

    context = browser.new_context()
    context.route("**", serve)
    tab = context.new_page()
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto("http://localhost/report.html")
    tab.wait_for_function("window.ulrReport !== undefined")
    assert selected(tab) == list(range(len(report.data.documents.row)))
    context.close()
    assert complaints == []
    own = {each.name for each in (files("ulr.report") / "static").iterdir()}
    assert set(loaded) >= {name for name in own if name.endswith(".js")}
