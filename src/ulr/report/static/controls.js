// Legend, filters and map buttons: they follow the store, and the store follows them.
import { count, element, percent } from "./dom.js";
import { labelColor, whenColorsChange } from "./colors.js";

/** The element with an attribute `data-part`. */
export const find = (name) => document.querySelector(`[data-part="${name}"]`);

/** Buttons that choose labels; none pressed shows all. */
export function createLegend(container, store) {
  const button = (label, i) => {
    const attributes = { type: "button", class: "tag", "data-label": i, "--color": labelColor(i) };
    const press = () => store.toggleLabel(i);
    return element("button", { ...attributes, onclick: press }, label.name, element("span", { class: "muted" }));
  };
  const update = () => {
    const names = store.labels.map(({ name }) => name);
    const shown = Array.from(container.children, (each) => each.firstChild.textContent);
    if (names.join("\n") !== shown.join("\n")) container.replaceChildren(...store.labels.map(button));
    const sizes = names.map(() => 0);
    for (const i of store.shown) sizes[store.documents[store.filter.by][i]] += 1;
    [...container.children].forEach((each, i) => {
      each.setAttribute("aria-pressed", store.filter.labels.includes(i));
      each.lastElementChild.textContent = ` ${count(sizes[i])}`;
    });
  };
  store.subscribe((change) => change.active || update());
  whenColorsChange(() =>
    [...container.children].forEach((each, i) => each.style.setProperty("--color", labelColor(i))),
  );
  update();
}

/** Inputs of the filters; a checkbox with `data-flag` shows documents for which this column is true. */
export function connectFilters(form, status, store) {
  const inputs = form.elements;
  const fields = ["words", "by", "moved", "wrong"].filter((name) => inputs[name]);
  const flags = [...form.querySelectorAll("input[data-flag]")];
  const valueOf = (name) => (inputs[name].type === "checkbox" ? "checked" : "value");
  form.addEventListener("input", () => {
    const change = { low: inputs.low.value / 100, high: inputs.high.value / 100 };
    for (const name of fields) change[name] = inputs[name][valueOf(name)];
    change.flags = flags.filter((input) => input.checked).map((input) => input.dataset.flag);
    store.setFilter(change);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  inputs.reset.addEventListener("click", () => store.reset());
  const update = () => {
    const { filter } = store;
    for (const name of fields) {
      const value = valueOf(name);
      if (inputs[name][value] !== filter[name]) inputs[name][value] = filter[name];
    }
    for (const input of flags) input.checked = filter.flags.includes(input.dataset.flag);
    for (const name of ["low", "high"]) {
      inputs[name].value = Math.round(100 * filter[name]);
      inputs[name].nextElementSibling.textContent = percent(filter[name]);
    }
    status.textContent = `${count(store.shown.length)} of ${count(store.documents.row.length)} documents`;
  };
  store.subscribe((change) => change.active || update());
  update();
}

/** Buttons above the map. */
export function connectMapButtons(map) {
  find("zoom-in").addEventListener("click", () => map.zoomBy(1.5));
  find("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.5));
  find("zoom-reset").addEventListener("click", () => map.zoomBy(0));
  for (const name of ["paths", "lasso"]) {
    const button = find(name);
    const set = (pressed) => {
      button.setAttribute("aria-pressed", pressed);
      map.setOptions({ [name]: pressed });
    };
    button.addEventListener("click", () => set(button.getAttribute("aria-pressed") !== "true"));
    set(button.getAttribute("aria-pressed") === "true");
  }
}
