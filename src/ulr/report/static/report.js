// The page of a report: one store, and every view of it.
import { labelColor, whenColorsChange } from "./colors.js";
import { connectFilters, connectMapButtons, createLegend, find } from "./controls.js";
import { createStore, withCounts } from "./store.js";
import { createMap } from "./map.js";
import { drawFlow } from "./flow.js";
import { drawHistogram, drawReliability, shadeConfusion } from "./charts.js";
import { createTable } from "./table.js";
import { withReasons } from "./why.js";

const NARROW = 640;

/** Colour every name of a label that the page had from the start. */
function colorTags() {
  for (const tag of document.querySelectorAll(".tag[data-label]"))
    tag.style.setProperty("--color", labelColor(Number(tag.dataset.label)));
}

/** Mark the words that spoke for the label, in the typical and borderline documents. */
function showReasons({ documents, labels }) {
  for (const text of document.querySelectorAll(".text[data-document]")) {
    const i = Number(text.dataset.document);
    text.replaceChildren(...withReasons(documents.text[i], documents.why[i], labels));
  }
}

function start() {
  const data = JSON.parse(find("data").textContent);
  const { result } = data;
  const store = createStore({ ...data.documents, why: data.why }, withCounts(data.labels, result));
  createLegend(find("legend"), store);
  connectFilters(find("filters"), find("status"), store);
  const map = createMap({ canvas: find("map"), tooltip: find("tooltip"), live: find("live") }, store);
  connectMapButtons(map);
  const table = createTable({ table: find("documents"), pager: find("pager") }, store);
  drawFlow(find("flow"), store.labels, result.flows);
  drawHistogram(find("histogram"), result.histogram);
  if (result.comparison) drawReliability(find("reliability"), result.comparison.reliability);
  document.querySelectorAll("table.confusion").forEach(shadeConfusion);
  colorTags();
  showReasons(store);
  whenColorsChange(() => {
    colorTags();
    showReasons(store);
  });
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
