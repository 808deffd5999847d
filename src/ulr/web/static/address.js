// The view in the address: session, filters, order and active document, after the #.

const DELAY = 250;

export const readAddress = () => new URLSearchParams(location.hash.slice(1));

/** Show a session in the address, without any filter. */
export function addressSession(id) {
  history.replaceState(null, "", id ? `#session=${encodeURIComponent(id)}` : location.pathname);
}

/** What a store shows, as parameters; labels by name, so that a link survives another order. */
function parametersOf(session, { filter, sort, labels, documents, active }) {
  const parameters = new URLSearchParams({ session });
  for (const label of filter.labels) parameters.append("label", labels[label].name);
  for (const flag of filter.flags) parameters.append("only", flag);
  if (filter.by !== "label") parameters.set("by", filter.by);
  if (filter.low > 0) parameters.set("low", filter.low);
  if (filter.high < 1) parameters.set("high", filter.high);
  if (filter.words) parameters.set("words", filter.words);
  if (filter.moved) parameters.set("moved", "1");
  if (filter.region) parameters.set("region", filter.region.map((point) => point.join(",")).join(";"));
  if (sort.column !== "row" || sort.down) parameters.set("sort", `${sort.down ? "-" : ""}${sort.column}`);
  if (active >= 0) parameters.set("row", documents.row[active]);
  return parameters;
}

function share(text, otherwise) {
  const value = Number(text ?? otherwise);
  return value >= 0 && value <= 1 ? value : otherwise;
}

function regionOf(text) {
  const points = (text ?? "").split(";").map((point) => point.split(",").map(Number));
  const good = points.length > 2 && points.every((point) => point.length === 2 && point.every(Number.isFinite));
  return good ? points : null;
}

/** Make a store show what the address says; whatever is not understood is left out. */
export function applyAddress(store) {
  const parameters = readAddress();
  const names = store.labels.map(({ name }) => name);
  const [, down, column] = /^(-?)(row|label|confidence)$/.exec(parameters.get("sort")) ?? [null, "", "row"];
  store.sort = { column, down: down === "-" };
  store.setFilter({
    labels: parameters
      .getAll("label")
      .map((name) => names.indexOf(name))
      .filter((i) => i >= 0),
    flags: parameters.getAll("only").filter((flag) => ["changed", "corrected"].includes(flag)),
    by: parameters.get("by") === "unrefined" ? "unrefined" : "label",
    low: share(parameters.get("low"), 0),
    high: share(parameters.get("high"), 1),
    words: parameters.get("words") ?? "",
    moved: parameters.has("moved"),
    region: regionOf(parameters.get("region")),
  });
  const active = store.documents.row.indexOf(Number(parameters.get("row")));
  if (active >= 0 && store.shown.includes(active)) store.setActive(active, true);
}

/** Keep the address up to date with a store. */
export function followStore(session, store) {
  let timer = 0;
  store.subscribe(() => {
    clearTimeout(timer);
    // Browsers refuse to change the address too often.
    timer = setTimeout(() => history.replaceState(null, "", `#${parametersOf(session, store)}`), DELAY);
  });
}
