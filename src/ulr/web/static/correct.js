// Checking and correcting: the panel of the active document, and the keys.
import { count, element, shortened } from "./report/dom.js";
import { find } from "./report/controls.js";
import { assignButtons } from "./result.js";

const PAUSE = 120;
const TYPING = "input:not([type=checkbox]):not([type=range]), textarea, select";

/**
 * The panel of a result. `actions`: correct(documents, label or null), undo(), refine(), and
 * document(row), which has the whole text and the probabilities.
 */
export function createPanel(result, actions) {
  const { store } = result;
  let [shown, full, timer, checked] = [-1, null, 0, new Set()];
  let { number } = result.view;

  const say = (text) => {
    find("said").textContent = text;
  };

  async function give(label) {
    const i = store.active;
    if (i < 0 || label >= store.labels.length) return;
    const at = store.shown.indexOf(i);
    checked.add(i);
    if (!(await actions.correct([i], label === null ? null : store.labels[label].name))) return;
    const row = `Row ${count(store.documents.row[i])}`;
    say(label === null ? `${row}: correction taken back.` : `${row} is now ${store.labels[label].name}.`);
    // A document that no longer matches the filters makes way for the next one.
    if (!store.shown.includes(i) && store.shown.length) store.setActive(store.shown[Math.min(at, store.shown.length - 1)], true);
  }

  /** The uncorrected document with the smallest lead that was not yet looked at. */
  function goToNext() {
    const open = result.view.next.filter((i) => !store.documents.corrected[i] && i !== store.active);
    if (!open.length) return say("There is no document left to check.");
    if (open.every((i) => checked.has(i))) checked = new Set();
    const next = open.find((i) => !checked.has(i));
    checked.add(next);
    if (!store.shown.includes(next)) store.reset();
    store.setActive(next, true);
    say(`Row ${count(store.documents.row[next])}: ${store.documents.text[next]}`);
  }

  function show() {
    const i = store.active;
    if (i !== shown) {
      [shown, full] = [i, null];
      clearTimeout(timer);
      if (i >= 0) timer = setTimeout(load, PAUSE, i);
    }
    draw();
  }

  async function load(i) {
    const found = await actions.document(store.documents.row[i]);
    if (!found || store.active !== i) return;
    full = found;
    draw();
  }

  function draw() {
    const { documents, labels, active } = store;
    const text = find("active-text");
    if (active < 0) {
      text.replaceChildren(element("span", { class: "muted" }, "Choose a document on the map or in the table, or press “Next to check”."));
      find("assign").replaceChildren();
      return;
    }
    const row = element("span", { class: "muted" }, `Row ${count(documents.row[active])} `);
    text.replaceChildren(row, shortened(full?.text ?? documents.text[active], 5000));
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

  const keys = { n: goToNext, u: actions.undo, r: actions.refine };
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches(TYPING)) return;
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
    if (!digit && !keys[event.key]) return;
    event.preventDefault();
    if (digit) give(digit - 1);
    else keys[event.key]();
  };
  // Only here, so that single keys do nothing while other parts of the page have the focus.
  document.getElementById("documents").addEventListener("keydown", press);
  find("next").addEventListener("click", goToNext);
  find("undo").addEventListener("click", () => actions.undo());
  find("refine").addEventListener("click", () => actions.refine());
  store.subscribe(show);
  show();

  return {
    /** Show what can be undone and what has not been used yet. */
    update(session) {
      const used = new Map(result.view.corrections);
      const now = new Map(session.corrections.map(({ row, label }) => [row, label]));
      const rows = new Set([...used.keys(), ...now.keys()]);
      const open = [...rows].filter((row) => used.get(row) !== now.get(row)).length;
      const all = `${count(session.corrections.length)} corrected`;
      find("check-status").textContent = open
        ? `${all}; ${count(open)} changed since the last run. Refine again to let the other documents follow.`
        : `${all}. The documents to check next are those whose label leads least over another.`;
      find("undo").disabled = !session.can_undo;
      find("refine").disabled = !session.outdated;
      if (number === result.view.number) return;
      ({ number } = result.view);
      shown = -2; // its probabilities are those of the run before
      show();
    },
  };
}
