// Suggestions for the labels: each is added to the editor with one click.
import { count, element } from "./report/dom.js";

const SHOWN_TEXTS = 2;
const quoted = (name) => `“${name}”`;

/** Show suggestions; `use(name, phrases)` adds a label, or phrases to one that is there. */
export function showSuggestions(container, { missing, merge, split, phrases, examined }, use) {
  const button = (text, name, added) => {
    const click = (event) => {
      use(name, added);
      Object.assign(event.target, { disabled: true, textContent: "Added" });
    };
    return element("button", { type: "button", onclick: click }, text);
  };
  const groups = missing.map((group) => {
    const other = group.better_name_for;
    const add = other === null ? button(`Add ${quoted(group.name)}`, group.name, []) : button(`Add to ${quoted(other)}`, other, [group.name]);
    const now = group.labels.map(([name, share]) => `${Math.round(100 * share)}% ${name}`).join(", ");
    return element(
      "li",
      {},
      element("div", { class: "panel-head" }, element("strong", {}, group.name), add),
      element("p", {}, `${count(group.size)} documents, now ${now || "without a label"}. Words: ${group.words.join(", ")}.`),
      ...group.texts.slice(0, SHOWN_TEXTS).map((text) => element("p", { class: "muted" }, text)),
    );
  });
  const described = Object.entries(phrases).map(([name, own]) => {
    const add = button(`Add to ${quoted(name)}`, name, own);
    return element("li", {}, element("div", { class: "panel-head" }, element("span", {}, `${quoted(name)}: ${own.join("; ")}`), add));
  });
  const lines = (texts) => texts.map((text) => element("li", {}, text));
  const part = (title, items) => items.length && [element("h3", {}, title), element("ul", { class: "texts" }, ...items)];
  const parts = [
    part("Documents that no label explains", groups),
    part("Labels that compete for the same documents", lines(merge.map(([one, other]) => `${quoted(one)} and ${quoted(other)}`))),
    part("Labels that hold two groups", lines(split.map(([name, one, other]) => `${quoted(name)}: ${one.join(", ")} – and – ${other.join(", ")}`))),
    part("Phrases from the documents that may describe a label", described),
  ].filter(Boolean);
  const none = groups.length ? "" : "No group of documents was found that the labels do not explain.";
  container.replaceChildren(
    element("p", { class: "muted", role: "status" }, `${count(examined)} documents were examined. ${none}`),
    ...parts.flat(),
  );
}
