// What the page shows of a result: summary, flow, map, table and legend, over one store.
import { count, element, percent } from "./report/dom.js";
import { connectFilters, connectMapButtons, createLegend, find } from "./report/controls.js";
import { createStore, labelName, withCounts } from "./report/store.js";
import { createMap } from "./report/map.js";
import { createTable, labelTag } from "./report/table.js";
import { drawFlow } from "./report/flow.js";
import { labelColor, whenColorsChange } from "./report/colors.js";

export const NONE = -1;
export const NONE_NAME = labelName([], NONE);
const MOST_PATHS = 12;
const cell = (...content) => element("td", {}, ...content);
const numeric = (value) => element("td", { class: "number" }, count(value));

/** Views of the documents of a first result; later results of the same documents update them. */
export function createResult(view) {
  prepare(view);
  const store = createStore(view.documents, view.labels);
  createLegend(find("legend"), store);
  connectFilters(find("filters"), find("status"), store);
  const map = createMap({ canvas: find("map"), tooltip: find("tooltip"), live: find("live") }, store);
  find("paths").setAttribute("aria-pressed", view.labels.length <= MOST_PATHS);
  connectMapButtons(map);
  const table = createTable({ table: find("documents"), pager: find("pager") }, store);
  const result = {
    store,
    map,
    table,
    view,
    fitted: view.documents.label,

    /** Whether another result has the same documents. */
    fits: (other) =>
      other.documents.row.length === store.documents.row.length &&
      other.result.encoder === result.view.result.encoder &&
      other.columns.join("\n") === result.view.columns.join("\n"),

    update(other) {
      prepare(other);
      const chosen = store.filter.labels.map((i) => store.labels[i].id);
      Object.assign(store.documents, other.documents);
      store.labels.splice(0, store.labels.length, ...other.labels);
      store.filter.labels = chosen.map((id) => store.labels.findIndex((label) => label.id === id)).filter((i) => i >= 0);
      Object.assign(result, { view: other, fitted: other.documents.label });
      showSummary(other);
    },

    /** Show the labels that documents were given. */
    correct(corrections) {
      const { documents, labels } = store;
      const given = new Map(corrections.map(({ row, label }) => [row, label]));
      documents.label = documents.row.map((row, i) => {
        const label = labels.findIndex(({ name }) => name === given.get(row));
        return label >= 0 || given.get(row) === NONE_NAME ? label : result.fitted[i];
      });
      documents.corrected = documents.row.map((row) => given.has(row));
      documents.notes = documents.row.map((row, i) => {
        if (documents.corrected[i]) return "corrected";
        return documents.previous[i] ? `before the last run ${documents.previous[i]}` : "";
      });
      store.refresh();
    },
  };
  whenColorsChange(() => showSizes(result.view));
  showSummary(view);
  return result;
}

/** Add the counts of the labels, and columns that only this page has. */
function prepare(view) {
  const { documents, previous } = view;
  view.labels = withCounts(view.labels, view.result);
  documents.previous = documents.row.map((_, i) => previous[i] ?? null);
  documents.changed = documents.previous.map((label) => label !== null);
  documents.corrected = documents.row.map(() => false);
}

/** Number of documents that have a label. */
export const labelledDocuments = ({ labels }) => labels.reduce((sum, { after }) => sum + after, 0);

function showSummary(view) {
  const { result } = view;
  const labelled = labelledDocuments(view);
  showVerdict(result, labelled);
  const figures = [
    ["Documents", count(result.documents), ""],
    ["Moved by refinement", count(result.moved), percent(result.moved / Math.max(1, labelled), 1)],
    ["Corrections used", count(result.examples), ""],
  ];
  const expected = result.diagnosis?.expected_accuracy;
  if (expected) figures.push(["Expected accuracy", percent(expected), "from confidence"]);
  const entry = ([name, value, small]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, `${value} `, element("small", {}, small)));
  find("figures").replaceChildren(...figures.map(entry));
  showChanges(view);
  const chart = element("div", { class: "chart" });
  find("flow").replaceChildren(chart);
  drawFlow(chart, view.labels, result.flows);
  showSizes(view);
  const n = view.documents.row.length;
  find("sampled").textContent =
    n < labelled
      ? `A random sample of ${count(n)} of ${count(labelled)} documents.`
      : `All ${count(n)} documents with a label.`;
}

function showVerdict({ diagnosis, documents, seconds }, labelled) {
  const [strong, rest] = find("verdict").children;
  const trusted = diagnosis?.refined && diagnosis.trusted;
  find("verdict").className = `verdict ${!diagnosis?.refined ? "none" : trusted ? "good" : "bad"}`;
  if (!diagnosis?.refined) {
    strong.textContent = "Not refined.";
    rest.textContent = "Documents have the label whose name is nearest.";
  } else if (trusted) {
    strong.textContent = "The refinement can be trusted.";
    rest.textContent = "Refined labels still mean what their names say.";
  } else {
    strong.textContent = "Check before use.";
    rest.textContent = "Some refined labels may not mean what their names say.";
  }
  rest.textContent += ` It took ${seconds.toFixed(1)} s.`;
  const warnings = [...(diagnosis?.warnings ?? [])];
  const without = documents - labelled;
  if (without) warnings.push(`${count(without)} documents are none of these, or have no words that the encoder knows; they got no label.`);
  find("warnings").replaceChildren(...warnings.map((warning) => element("li", {}, warning)));
}

function showChanges({ number, changes }) {
  const total = changes.reduce((sum, [, , n]) => sum + n, 0);
  find("changed").textContent =
    number === 1 ? "" : total ? `The last run gave ${count(total)} documents another label.` : "The last run changed no label.";
  find("changes").hidden = !total;
  const row = ([before, now, n]) => element("tr", {}, cell(before), cell(now), numeric(n));
  find("changes").querySelector("tbody").replaceChildren(...changes.map(row));
}

function showSizes({ labels }) {
  const row = (label, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, labelTag(labels, i)),
      numeric(label.before),
      numeric(label.after),
      cell(label.words.join(", ")),
    );
  find("sizes").tBodies[0].replaceChildren(...labels.map(row));
}

/** Buttons that give the active document a label, or none of these. */
export function assignButtons(labels, probabilities, current, onclick) {
  const own = labels.filter(({ id }) => id !== null);
  return [...own, { name: NONE_NAME }].map(({ name }, place) => {
    const i = place < own.length ? place : NONE;
    const key = i === NONE ? element("kbd", {}, "x") : i < 9 ? element("kbd", {}, String(i + 1)) : null;
    const share = probabilities?.[name] !== undefined ? element("span", { class: "muted" }, ` ${percent(probabilities[name])}`) : null;
    const look = { type: "button", class: "tag", "aria-pressed": String(labelName(labels, current) === name), "--color": labelColor(labels.findIndex((label) => label.name === name)) };
    return element("button", { ...look, onclick: () => onclick(i) }, name, share, " ", key);
  });
}
