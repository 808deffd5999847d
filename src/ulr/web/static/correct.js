// Checking and correcting: the panel of the active document, and the keys.
import { count, element, shortened } from "./report/dom.js";
import { find } from "./report/controls.js";
import { reasonLine, withReasons } from "./report/why.js";
import { labelName } from "./report/store.js";
import { assignButtons, NONE } from "./result.js";

const PAUSE = 120;
const TYPING = "input:not([type=checkbox]):not([type=range]), textarea, select";

/**
 * The panel of a result. `actions`: correct(documents, label or null), undo(), refine(), and
 * load("document" or "why", row): the whole text with the probabilities, and the words that decided.
 */
export function createPanel(result, actions) {
  const { store } = result;
  let [shown, full, why, timer, checked] = [-1, null, null, 0, new Set()];
  let proposed = -1;
  let visible = false;
  let { number } = result.view;

  const say = (text) => {
    find("said").textContent = text;
  };

  /** Give the active document a label, `NONE` of these, or take it back (null), and go on. */
  async function give(label) {
    const i = store.active;
    if (i < 0 || label >= store.labels.length) return;
    checked.add(i);
    const row = `Row ${count(store.documents.row[i])}`;
    const name = label === null ? null : labelName(store.labels, label);
    // It goes on before the server answers, so that keys can be pressed one after the other.
    const worked = actions.correct([i], name);
    if (label === null) say(`${row}: correction taken back.`);
    else if (i === proposed) goToNext(`${row} is now ${name}. `);
    else goDown(i, `${row} is now ${name}. `);
    if (!(await worked)) store.setActive(i, true);
  }

  /** The document below one in the table, for somebody who goes through it. */
  function goDown(i, done) {
    const below = store.shown[store.shown.indexOf(i) + 1];
    if (below === undefined) return say(`${done}It was the last one in the table.`);
    store.setActive(below, true);
    say(done + described(below));
  }

  /** The uncorrected document with the smallest lead that was not yet looked at. */
  function goToNext(done = "") {
    const open = result.view.next.filter((i) => !store.documents.corrected[i] && i !== store.active);
    if (!open.length) return say(`${done}There is no document left to check.`);
    if (open.every((i) => checked.has(i))) checked = new Set();
    propose(open.find((i) => !checked.has(i)));
    checked.add(proposed);
    say(done + described(proposed));
  }

  function propose(i) {
    proposed = i;
    if (!store.shown.includes(i)) store.reset();
    store.setActive(i, true);
    find("panel").scrollIntoView({ block: "nearest" });
  }

  const described = (i) => `Row ${count(store.documents.row[i])}: ${store.documents.text[i]}`;

  function show() {
    const i = store.active;
    if (i !== shown) {
      [shown, full, why] = [i, null, null];
      clearTimeout(timer);
      if (i >= 0) timer = setTimeout(load, PAUSE, i);
    }
    draw();
  }

  async function load(i) {
    const whole = await current(i, "document");
    if (!whole) return;
    full = whole;
    draw();
    const found = await current(i, "why");
    if (!found) return;
    why = found;
    draw();
  }

  /** Load something of a document; null if another one has become active. */
  async function current(i, what) {
    const number = result.view.number;
    const found = await actions.load(what, store.documents.row[i]);
    return store.active === i && result.view.number === number ? found : null;
  }

  function draw() {
    const { documents, labels, active } = store;
    const text = find("active-text");
    if (active < 0) {
      text.replaceChildren(element("span", { class: "muted" }, "Choose a document on the map or in the table, or press “Next to check”."));
      find("assign").replaceChildren();
      find("why").replaceChildren();
      return;
    }
    const row = element("span", { class: "muted" }, `Row ${count(documents.row[active])} `);
    const whole = shortened(full?.text ?? documents.text[active], 5000);
    text.replaceChildren(row, ...withReasons(whole, why, labels));
    find("why").replaceChildren(...reasonLine(why, labels));
    const probabilities = full?.probabilities;
    const focused = [...find("assign").children].indexOf(document.activeElement);
    const buttons = assignButtons(labels, probabilities, documents.label[active], give);
    if (documents.corrected[active]) {
      const takeBack = () => give(null);
      buttons.push(element("button", { type: "button", class: "back", onclick: takeBack }, "Take back"));
    }
    find("assign").replaceChildren(...buttons);
    if (focused >= 0) find("assign").children[Math.min(focused, buttons.length - 1)].focus();
  }

  const keys = {
    n: () => goToNext(),
    x: () => give(NONE),
    y: () => store.active >= 0 && give(store.documents.label[store.active]),
    u: actions.undo,
    r: actions.refine,
  };
  const section = document.getElementById("documents");
  const press = (event) => {
    // Single keys do nothing while somebody types, or works in a part of the page without documents.
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches(TYPING) || !find("keys").checked) return;
    if (!visible && !section.contains(event.target)) return;
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
    if (!digit && !keys[event.key]) return;
    event.preventDefault();
    if (digit) give(digit - 1);
    else keys[event.key]();
  };
  document.addEventListener("keydown", press);
  new IntersectionObserver((seen) => (visible = seen.at(-1).isIntersecting)).observe(find("panel"));
  find("next").addEventListener("click", () => goToNext());
  find("undo").addEventListener("click", () => actions.undo());
  find("refine").addEventListener("click", () => actions.refine());
  store.subscribe(show);
  show();

  return {
    /** Show the first of some rows that the map has. */
    show(rows) {
      const i = store.documents.row.findIndex((row) => rows.includes(row));
      if (i >= 0) propose(i);
    },

    /** Show what can be undone and what has not been used yet. */
    update(session) {
      const used = new Map(result.view.corrections);
      const now = new Map(session.corrections.map(({ row, label }) => [row, label]));
      const rows = new Set([...used.keys(), ...now.keys()]);
      const open = [...rows].filter((row) => used.get(row) !== now.get(row)).length;
      const all = `${count(session.corrections.length)} corrected`;
      find("check-status").textContent = open
        ? `${all}; ${count(open)} changed since the last run. Refine again to let the other documents follow.`
        : `${all}. The documents to check next are those whose labels would help most.`;
      find("undo").disabled = !session.can_undo;
      find("refine").disabled = !session.outdated;
      if (number === result.view.number) return;
      ({ number } = result.view);
      shown = -2; // its probabilities are those of the run before
      show();
    },
  };
}
