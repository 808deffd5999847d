"""What tests of the report and of the page do in a browser."""

# What removing HTML leaves, and a browser would still take for markup.
HOSTILE = [
    "striker </script <svg/onload=window.attacked=1> goal",
    "bank &nosuch; & profit <img/src=x/onerror=window.attacked=2>",
    "telescope \u2028 planet \u2029 protein ]]> <!-- quantum",
    "coach {{ 7 * 7 }} {% raw %} league",
]
PARTS = "window.ulrReport ?? window.ulrPage"
ALL_PAGES = f"""() => {{
  const {{ table }} = {PARTS}, rows = [];
  for (let page = 0; page < table.pages(); page++) {{
    table.turn(page);
    rows.push(...table.onPage());
  }}
  table.turn(0);
  return rows;
}}"""


def selected(page):
    """The documents that the map has drawn in colour and the pages of the table list."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    on_map, in_table = page.evaluate(f"({PARTS}).map.drawn()"), page.evaluate(ALL_PAGES)
    assert sorted(on_map) == sorted(in_table)
    status = page.locator("[data-part=status]").inner_text()
    assert status.startswith(f"{len(on_map)} of ")
    return sorted(on_map)


def select_region(page, share, steps=4):
    """Draw a region around the left part of the map."""
    canvas = page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.get_by_role("button", name="Select region").click()
    left, top = box["x"] + 3, box["y"] + 3
    right, bottom = box["x"] + share * box["width"], box["y"] + box["height"] - 3
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom)):
        page.mouse.move(x, y, steps=steps)
    page.mouse.up()


def assert_accessible(page, width):
    """The page has no serious finding of axe, and does not scroll sideways."""
    from axe_playwright_python.sync_playwright import Axe

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
