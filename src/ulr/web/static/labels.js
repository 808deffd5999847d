// The editor of labels: a name and phrases for each.
import { count, element } from "./report/dom.js";
import { labelColor, whenColorsChange } from "./report/colors.js";

const SEPARATORS = /[,;\t\n]/;
const EMPTY = { id: null, name: "", phrases: [] };

/** The phrases of a label, unless they are only its name. */
const described = ({ name, phrases }) => (phrases.length === 1 && phrases[0] === name ? "" : phrases.join("; "));

/** The editor in a list; a person adds, renames and removes labels in it, or pastes several: `paste(text)`. */
export function createLabelEditor(list, addButton, paste) {
  let rows = [];

  function addRow(label, size) {
    const input = (value, placeholder) => element("input", { type: "text", value, placeholder, autocomplete: "off" });
    const name = input(label.name, "name");
    const phrases = input(described(label), "phrases (optional)");
    const remove = element("button", { type: "button", onclick: () => removeRow(row) }, "×");
    const swatch = element("span", { class: "swatch" });
    const number = element("span", { class: "muted size" }, size === undefined ? "" : count(size));
    const row = { id: label.id, name, phrases, remove, swatch, item: null };
    row.item = element("li", {}, swatch, name, phrases, number, remove);
    name.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || rows.at(-1) !== row || !name.value.trim()) return;
      event.preventDefault();
      addRow(EMPTY).name.focus();
    });
    name.addEventListener("paste", (event) => {
      const text = event.clipboardData.getData("text");
      if (!SEPARATORS.test(text.trim())) return;
      event.preventDefault();
      paste(text);
    });
    rows.push(row);
    list.append(row.item);
    describeRows();
    return row;
  }

  function removeRow(row) {
    const at = rows.indexOf(row);
    rows.splice(at, 1);
    row.item.remove();
    if (!rows.length) addRow(EMPTY);
    describeRows();
    rows[Math.min(at, rows.length - 1)].name.focus();
  }

  function describeRows() {
    rows.forEach((row, i) => {
      row.name.setAttribute("aria-label", `Name of label ${i + 1}`);
      row.phrases.setAttribute("aria-label", `Phrases of label ${i + 1}`);
      row.remove.setAttribute("aria-label", `Remove label ${i + 1}`);
      row.swatch.textContent = i < 9 ? i + 1 : "";
      row.swatch.style.setProperty("--color", labelColor(i));
    });
  }

  const texts = (input) =>
    input.value
      .split(";")
      .map((text) => text.trim())
      .filter(Boolean);

  /** The labels that have a name. */
  const get = () =>
    rows
      .map((row) => ({ id: row.id, name: row.name.value.trim(), phrases: texts(row.phrases) }))
      .filter((label) => label.name || label.phrases.length);

  addButton.addEventListener("click", () => addRow(EMPTY).name.focus());
  whenColorsChange(describeRows);
  return {
    /** Show labels, and numbers of documents beside them. */
    set(labels, sizes = []) {
      rows = [];
      list.replaceChildren();
      labels.forEach((label, i) => addRow(label, sizes[i]));
      if (!labels.length) for (let i = 0; i < 3; i++) addRow(EMPTY);
    },
    /** Add the labels of a list; one that is there gets the new phrases, a field with the list is used. */
    add(labels, list) {
      for (const { name } of rows) if (name.value === list) name.value = "";
      for (const label of labels) {
        const named = (name) => rows.find((row) => row.name.value.trim() === name);
        const row = named(label.name) ?? named("") ?? addRow(EMPTY);
        row.name.value = label.name;
        row.phrases.value = described(label);
      }
    },
    /** Add phrases to a label, or a label that is not there yet. */
    describe(name, phrases) {
      const row = rows.find((each) => each.name.value.trim() === name);
      if (!row) return this.add([{ name, phrases: phrases.length ? phrases : [name] }]);
      // Without phrases, the name describes the label; with some, it is one of them.
      const own = texts(row.phrases);
      row.phrases.value = [...new Set([...(own.length ? own : [name]), ...phrases])].join("; ");
    },
    get,
    /** What was typed, if it is a list in the field of a single label. */
    typedList() {
      const [only, ...others] = get();
      return only && !others.length && !only.phrases.length && SEPARATORS.test(only.name) ? only.name : null;
    },
    focus: () => rows[0].name.focus(),
  };
}
