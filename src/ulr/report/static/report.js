// The page of a report: one store, and every view of it.
import { count, element, percent } from "./dom.js";
import { labelColor, whenColorsChange } from "./colors.js";
import { createStore } from "./store.js";
import { createMap } from "./map.js";
import { drawFlow } from "./flow.js";
import { drawHistogram, drawReliability, shadeConfusion } from "./charts.js";
import { createTable } from "./table.js";

const NARROW = 640;
const find = (name) => document.querySelector(`[data-part="${name}"]`);

/** Colour every name of a label that the page had from the start. */
function colorTags() {
  for (const tag of document.querySelectorAll(".tag[data-label]"))
    tag.style.setProperty("--color", labelColor(Number(tag.dataset.label)));
}

/** Buttons that choose labels; none pressed shows all. */
function createLegend(container, store) {
  const buttons = store.labels.map((label, i) => {
    const button = element("button", { type: "button", class: "tag", "data-label": i }, label.name);
    button.append(element("span", { class: "muted" }));
    button.addEventListener("click", () => store.toggleLabel(i));
    return button;
  });
  container.append(...buttons);
  const update = () => {
    const sizes = store.labels.map(() => 0);
    for (const i of store.shown) sizes[store.documents[store.filter.by][i]] += 1;
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", store.filter.labels.includes(i));
      button.lastElementChild.textContent = ` ${count(sizes[i])}`;
    });
  };
  store.subscribe((change) => change.active || update());
  update();
}

/** Inputs of the filters; they follow the store, and the store follows them. */
function connectFilters(form, status, store) {
  const inputs = form.elements;
  const fields = ["words", "by", "moved", "wrong"].filter((name) => inputs[name]);
  const valueOf = (name) => (inputs[name].type === "checkbox" ? "checked" : "value");
  form.addEventListener("input", () => {
    const change = { low: inputs.low.value / 100, high: inputs.high.value / 100 };
    for (const name of fields) change[name] = inputs[name][valueOf(name)];
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
    for (const name of ["low", "high"]) {
      inputs[name].value = Math.round(100 * filter[name]);
      inputs[name].nextElementSibling.textContent = percent(filter[name]);
    }
    status.textContent = `${count(store.shown.length)} of ${count(store.documents.row.length)} documents`;
  };
  store.subscribe((change) => change.active || update());
  update();
}

function connectMapButtons(map) {
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

function start() {
  const data = JSON.parse(find("data").textContent);
  const store = createStore(data.documents, data.labels);
  createLegend(find("legend"), store);
  connectFilters(find("filters"), find("status"), store);
  const map = createMap({ canvas: find("map"), tooltip: find("tooltip"), live: find("live") }, store);
  connectMapButtons(map);
  const table = createTable({ table: find("documents"), pager: find("pager") }, store);
  drawFlow(find("flow"), data.labels, data.flows);
  drawHistogram(find("histogram"), data.histogram);
  if (data.comparison) drawReliability(find("reliability"), data.comparison.reliability);
  document.querySelectorAll("table.confusion").forEach(shadeConfusion);
  colorTags();
  whenColorsChange(colorTags);
  if (innerWidth < NARROW) for (const label of document.querySelectorAll("details.label")) label.open = false;
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-show]");
    if (link) {
      store.reset();
      store.setActive(Number(link.dataset.show), true);
    }
  });
  window.ulrReport = { data, store, map, table };
}

start();
