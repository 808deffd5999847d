// The table of the selected documents, a page at a time.
import { count, element, percent } from "./dom.js";
import { labelColor, whenColorsChange } from "./colors.js";
import { labelName, searchTerms } from "./store.js";
import { withReasons } from "./why.js";

const PAGE = 25;

/** A text with the search terms marked. */
export function marked(text, words) {
  const terms = searchTerms(words).sort((a, b) => b.length - a.length);
  if (!terms.length) return [text];
  const escaped = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = text.split(new RegExp(`(${escaped.join("|")})`, "gi"));
  return parts.map((part, i) => (i % 2 ? element("mark", {}, part) : part));
}

/** The name of a label with its colour. */
export const labelTag = (labels, i) =>
  element("span", { class: "tag", "data-label": i, "--color": labelColor(i) }, labelName(labels, i));

/** The table of a store; `table` has a head, and `pager` gets buttons that turn pages. */
export function createTable({ table, pager }, store) {
  const { documents, labels } = store;
  const body = table.tBodies[0];
  const pages = () => Math.max(1, Math.ceil(store.shown.length / PAGE));
  let page = 0;
  let rows = [];

  /** Label, label by name if it is another, second candidate, and true label of a document. */
  function candidates(i) {
    const [label, before] = [documents.label[i], documents.unrefined[i]];
    const second = documents.second_confidence[i];
    const truth = documents.truth[i] ?? -1;
    const lines = [labelTag(labels, label)];
    const add = (title, other, ...rest) =>
      lines.push(element("div", { class: "line" }, `${title} `, labelTag(labels, other), ...rest));
    if (before !== label) add("by name", before);
    if (second > 0 && documents.second[i] !== label && label >= 0) add("second", documents.second[i], ` ${percent(second)}`);
    if (truth >= 0) add("true", truth, truth === label ? "" : element("span", { class: "wrong" }, " ✗"));
    if (documents.notes?.[i]) lines.push(element("div", { class: "line" }, documents.notes[i]));
    return lines;
  }

  function textOf(i) {
    const [text, why] = [documents.text[i], documents.why?.[i]];
    return why && !store.filter.words ? withReasons(text, why, labels) : marked(text, store.filter.words);
  }

  function row(i) {
    const activate = () => store.setActive(i);
    return element(
      "tr",
      { tabindex: -1, "data-document": i, onclick: activate, onfocus: activate },
      element("td", { class: "number", "data-title": "Row" }, count(documents.row[i])),
      element("td", { class: "text" }, ...textOf(i)),
      element("td", { class: "label-cell" }, ...candidates(i)),
      element("td", { class: "number", "data-title": "Confidence" }, percent(documents.confidence[i])),
    );
  }

  // The buttons stay the same, so that they keep the focus.
  const turns = [
    ["«", "First page", () => 0],
    ["‹", "Previous page", () => page - 1],
    ["›", "Next page", () => page + 1],
    ["»", "Last page", () => pages() - 1],
  ].map(([text, name, to]) => {
    const button = element("button", { type: "button", "aria-label": name, onclick: () => turn(to()) }, text);
    return { button, to };
  });
  const position = element("span");
  pager.append(...turns.map(({ button }) => button));
  pager.insertBefore(position, turns[2].button);

  function turn(to) {
    page = to;
    draw();
    table.parentElement.scrollTop = 0;
  }

  function draw() {
    page = Math.min(page, pages() - 1);
    rows = store.shown.slice(page * PAGE, (page + 1) * PAGE);
    const hadFocus = body.contains(document.activeElement);
    body.replaceChildren(...rows.map(row));
    if (!rows.length) {
      const cell = element("td", { colspan: 4, class: "empty" }, "No document matches these filters.");
      body.append(element("tr", {}, cell));
    }
    position.textContent = `page ${count(page + 1)} of ${count(pages())}`;
    for (const { button, to } of turns) button.disabled = to() === page || to() < 0 || to() >= pages();
    for (const head of table.querySelectorAll("th[data-sort]")) {
      const sorted = head.dataset.sort === store.sort.column;
      head.setAttribute("aria-sort", sorted ? (store.sort.down ? "descending" : "ascending") : "none");
    }
    mark();
    if (hadFocus) body.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
  }

  function mark() {
    const focusable = rows.includes(store.active) ? store.active : rows[0];
    for (const line of body.rows) {
      const i = Number(line.dataset.document);
      line.classList.toggle("active", i === store.active);
      line.tabIndex = i === focusable ? 0 : -1;
    }
  }

  function reveal() {
    const at = store.shown.indexOf(store.active);
    if (at < 0) return;
    page = Math.floor(at / PAGE);
    draw();
    const view = table.parentElement;
    view.scrollTop = body.rows[at % PAGE].offsetTop - view.clientHeight / 2;
  }

  body.addEventListener("keydown", (event) => {
    const sibling = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = sibling && event.target.closest("tr")[sibling];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  for (const head of table.querySelectorAll("th[data-sort]")) {
    head.firstElementChild.addEventListener("click", () => store.setSort(head.dataset.sort));
  }
  store.subscribe((change) => {
    if (change.reveal) reveal();
    else if (change.active) mark();
    else if (change.kept) draw();
    else turn(0);
  });
  whenColorsChange(draw);
  draw();
  const onPage = () => Array.from(body.querySelectorAll("tr[data-document]"), (line) => Number(line.dataset.document));
  return { pages, turn, onPage };
}
