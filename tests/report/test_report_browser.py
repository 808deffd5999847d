"""The page in a real browser: filters, map, table and keyboard agree, and texts stay texts."""

import pytest

from browsing import ALL_PAGES, assert_accessible, select_region, selected

pytestmark = pytest.mark.browser


@pytest.fixture
def page(open_page, report_path):
    return open_page(report_path, viewport={"width": 1300, "height": 900})


def test_all_documents_are_shown_at_first_and_markup_in_them_stays_text(page, report, hostile):
    documents = report.data.documents
    assert selected(page) == list(range(len(documents.row)))
    rows = page.evaluate("ulrReport.table.onPage()")
    texts = page.locator("table.documents td.text").all_inner_texts()
    assert len(rows) == 25
    assert texts == [documents.text[i] for i in rows]
    assert page.evaluate("window.attacked") is None
    assert page.locator("img").count() == 0
    for text in hostile:
        page.fill("input[name=words]", text)
        assert page.locator("table.documents td.text").all_inner_texts() == [text]
    assert page.title().startswith("A <title> & more")


def test_words_that_decided_are_marked_in_typical_and_borderline_documents(page, report):
    labels = report.data.labels
    shown = {i for label in labels for i in label.representative + label.borderline}
    assert set(report.data.why) == shown
    assert report.data.why_all
    for i in sorted(shown)[:6]:
        why = report.data.why[i]
        found = why.for_label + why.for_runner_up
        text = page.locator(f".text[data-document='{i}']").first
        marked = {word.lower() for word in text.locator("mark").all_inner_texts()}
        assert max(found, key=lambda each: each.weight).word.lower() in marked
        assert marked <= {each.word.lower() for each in found}
        assert text.inner_text() == report.data.documents.text[i]


def test_filters_select_the_same_documents_on_the_map_and_in_the_table(page, report):
    d = report.data.documents
    legend = page.locator("[data-part=legend] button")

    def check(condition):
        expected = [i for i in range(len(d.row)) if condition(i)]
        assert 0 < len(expected) < len(d.row)
        assert selected(page) == expected

    page.fill("input[name=words]", "GOAL coach")
    check(lambda i: "goal" in d.text[i] and "coach" in d.text[i])
    marks = page.locator("table.documents mark").all_inner_texts()
    assert {mark.lower() for mark in marks} == {"goal", "coach"}
    page.fill("input[name=words]", "zzzz")
    assert selected(page) == []
    assert "No document matches" in page.locator("table.documents").inner_text()
    page.fill("input[name=words]", "")
    legend.nth(0).click()
    check(lambda i: d.label[i] == 0)
    legend.nth(2).click()
    assert legend.nth(2).get_attribute("aria-pressed") == "true"
    check(lambda i: d.label[i] in (0, 2))
    page.select_option("select[name=by]", "truth")
    check(lambda i: d.truth[i] in (0, 2))
    page.get_by_role("button", name="Reset").click()
    page.locator("input[name=low]").fill("60")
    page.locator("input[name=high]").fill("90")
    check(lambda i: 0.6 <= d.confidence[i] <= 0.9)
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("moved by refinement").check()
    check(lambda i: d.label[i] != d.unrefined[i])
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("wrong").check()
    check(lambda i: d.truth[i] not in (-1, d.label[i]))


def test_a_region_of_the_map_selects_the_documents_in_it(page):
    select_region(page, 0.5)
    middle = page.locator("canvas").bounding_box()["width"] / 2
    places = page.evaluate("ulrReport.data.documents.row.map((_, i) => ulrReport.map.placeOf(i))")
    expected = [i for i, (x, _) in enumerate(places) if x < middle]
    assert 0 < len(expected) < len(places)
    assert selected(page) == expected
    page.locator("canvas").press("Escape")
    assert len(selected(page)) == len(places)


def test_hover_shows_the_text_and_a_click_turns_the_table_to_it(page, report):
    canvas = page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    x, y = page.evaluate("ulrReport.map.placeOf(ulrReport.data.documents.row.length - 1)")
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


def test_the_table_sorts_and_turns_pages_and_keys_move_in_it(page, report):
    page.get_by_role("columnheader", name="Confidence").get_by_role("button").click()
    confidence = report.data.documents.confidence
    shown = page.evaluate(ALL_PAGES)
    assert [confidence[i] for i in shown] == sorted(confidence)
    page.get_by_role("button", name="Next page").click()
    assert page.evaluate("ulrReport.table.onPage()") == shown[25:50]
    page.locator("table.documents tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("ulrReport.store.active") == shown[27]


def test_pixels_of_a_document_have_the_colour_of_its_label(page, report):
    page.get_by_role("button", name="Label paths").click()
    page.fill("input[name=words]", "goal coach")
    shown = selected(page)
    code = """(places) => {
      const canvas = document.querySelector("canvas"), ratio = canvas.width / canvas.clientWidth;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return places.map((place) => {
        const [x, y] = ulrReport.map.placeOf(place).map((each) => Math.floor(each * ratio));
        return [...data.slice(4 * (y * canvas.width + x)).slice(0, 3)];
      });
    }"""
    tags = page.locator("[data-part=legend] .tag")
    matching = 0
    for place, pixel in zip(shown, page.evaluate(code, shown), strict=True):
        label = report.data.documents.label[place]
        wanted = tags.nth(label).evaluate("tag => tag.style.getPropertyValue('--color')")
        matching += pixel == pytest.approx(
            [int(wanted[at : at + 2], 16) for at in (1, 3, 5)], abs=3
        )
    assert matching > 0.5 * len(shown)  # others may lie over some of them


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_fits_every_width(open_page, report_path, scheme):
    page = open_page(report_path, color_scheme=scheme)
    for width in (360, 768, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        page.reload()
        assert_accessible(page, width)


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
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
