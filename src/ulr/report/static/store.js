// The documents and the selection that every view shows.

const ALL = { labels: [], low: 0, high: 1, words: "", moved: false, wrong: false, flags: [], region: null };

/** The name of a label; -1 stands for none where the labels have no entry for it. */
export const labelName = (labels, i) => labels[i]?.name ?? "none of these";

/** Terms of a search: words in lower case that a document must all contain. */
export const searchTerms = (words) => words.toLowerCase().split(/\s+/).filter(Boolean);

function inside(polygon, x, y) {
  let found = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) found = !found;
  }
  return found;
}

/** The labels of a page with the counts of its result; a none label is last, and has none before. */
export function withCounts(labels, result) {
  const counted = result.labels.reduce((sum, { after }) => sum + after, 0);
  const labelled = result.histogram.flat().reduce((sum, n) => sum + n, 0);
  const none = { before: 0, after: labelled - counted };
  return labels.map((label, i) => ({ ...label, ...(result.labels[i] ?? none) }));
}

/**
 * A store has `documents`, `labels`, the `filter`, the `shown` documents (positions, in the order
 * of the table) and the `active` one (or -1). Views subscribe and redraw on every change.
 */
export function createStore(documents, labels) {
  const lower = documents.text.map((text) => text.toLowerCase());
  const listeners = [];
  const store = {
    documents,
    labels,
    filter: { by: "label", ...ALL },
    sort: { column: "row", down: false },
    shown: [],
    active: -1,

    subscribe(listener) {
      listeners.push(listener);
    },

    setFilter(change) {
      Object.assign(store.filter, change);
      update();
    },

    toggleLabel(label) {
      const chosen = new Set(store.filter.labels);
      if (!chosen.delete(label)) chosen.add(label);
      store.setFilter({ labels: [...chosen] });
    },

    reset() {
      store.setFilter(ALL);
    },

    setSort(column) {
      store.sort = { column, down: store.sort.column === column && !store.sort.down };
      update();
    },

    /** Show documents or labels that have changed in place; the table stays on its page. */
    refresh() {
      update({ kept: true });
    },

    /** Make a document the active one; `reveal` asks the table to turn to its page. */
    setActive(document, reveal = false) {
      if (document === store.active && !reveal) return;
      store.active = document;
      notify({ active: true, reveal });
    },
  };

  function matches(i, terms, chosen) {
    const { filter } = store;
    if (chosen.size && !chosen.has(documents[filter.by][i])) return false;
    if (documents.confidence[i] < filter.low || documents.confidence[i] > filter.high) return false;
    if (filter.moved && documents.label[i] === documents.unrefined[i]) return false;
    if (filter.wrong && (documents.truth[i] < 0 || documents.truth[i] === documents.label[i])) return false;
    if (!filter.flags.every((name) => documents[name]?.[i])) return false;
    if (filter.region && !inside(filter.region, documents.x[i], documents.y[i])) return false;
    return terms.every((term) => lower[i].includes(term));
  }

  function update(change = {}) {
    const terms = searchTerms(store.filter.words);
    const chosen = new Set(store.filter.labels);
    const found = [...documents.row.keys()].filter((i) => matches(i, terms, chosen));
    const values = documents[store.sort.column];
    const sign = store.sort.down ? -1 : 1;
    store.shown = found.sort((a, b) => sign * (values[a] - values[b]) || a - b);
    if (store.active >= 0 && !matches(store.active, terms, chosen)) store.active = -1;
    notify({ active: false, reveal: false, ...change });
  }

  function notify(change) {
    for (const listener of listeners) listener(change);
  }

  update();
  return store;
}
