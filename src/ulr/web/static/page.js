// The page: upload, labels, progress, result. One session per page load.
import { count, element } from "./report/dom.js";
import { find } from "./report/controls.js";
import { addressSession, applyAddress, followStore, readAddress } from "./address.js";
import { Problem, request, sessionRequests } from "./api.js";
import { createLabelEditor } from "./labels.js";
import { createPanel } from "./correct.js";
import { showSuggestions } from "./suggestions.js";
import { createResult, labelledDocuments } from "./result.js";

const FIRST_POLL = 40;
const LONGEST_POLL = 1000;
const editor = createLabelEditor(find("labels"), find("add-label"), addLabels);
const page = { status: null, session: null, api: null, result: null, panel: null };

/** Do something; a problem is shown as one sentence. Returns whether it worked. */
async function attempt(action) {
  find("problem").hidden = true;
  try {
    await action();
    return true;
  } catch (problem) {
    if (!problem.status && problem.status !== 0) console.error(problem);
    showProblem(problem.message);
    return false;
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

function showProblem(sentence) {
  find("problem").firstElementChild.textContent = sentence;
  find("problem").hidden = false;
  find("problem").scrollIntoView({ block: "nearest" });
}

function showStage(name, text = "", done = null, total = null) {
  find("progress").hidden = false;
  find("stage").textContent = name;
  find("progress-text").textContent = text;
  const bar = find("progress").querySelector("progress");
  if (total) Object.assign(bar, { max: total, value: done });
  else bar.removeAttribute("value");
}

/** Documents of a file, a text or the example become a session. */
async function upload(content, name) {
  const { upload_bytes: limit } = page.status.limits;
  if (content?.size > limit)
    return showProblem(`${name} has ${megabytes(content.size)} MB; this server takes at most ${megabytes(limit)} MB.`);
  await attempt(async () => {
    document.body.setAttribute("aria-busy", "true");
    showStage(content === null ? "Opening the example" : `Uploading ${name}`);
    find("cancel").hidden = true;
    try {
      const path = content === null ? "/api/example" : `/api/sessions?name=${encodeURIComponent(name)}`;
      const session = await request("POST", path, content ?? undefined);
      addressSession(session.id);
      await open(session);
      editor.focus();
    } finally {
      find("progress").hidden = true;
    }
  });
}

const several = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const megabytes = (bytes) => count(Math.ceil(bytes / 2 ** 20));

/** Show a session: its table and labels, its result if there is one, its job if one is running. */
async function open(session) {
  page.session = session;
  page.api = sessionRequests(session.id);
  find("start").hidden = true;
  for (const name of ["setup", "restart"]) find(name).hidden = false;
  document.title = `${session.name} – ulr`;
  find("about").textContent = `${session.name}, ${several(session.rows, "row")}`;
  find("data-summary").textContent = `${session.name}: ${several(session.rows, "row")}, ${several(session.columns.length, "column")}`;
  showTable(session);
  const suggested = session.suggested_labels.map((name) => ({ id: null, name, phrases: [] }));
  editor.set(session.labels.length ? session.labels : suggested);
  showOptions(session);
  if (session.result !== null) await showResult();
  if (["waiting", "running"].includes(session.job?.state)) await follow();
}

function showTable({ columns, preview, text_columns: chosen }) {
  const box = (name) => element("input", { type: "checkbox", name: "column", value: name, checked: chosen.includes(name) });
  find("columns").replaceChildren(...columns.map((name) => element("label", { class: "check" }, box(name), ` ${name}`)));
  const row = (values, tag) => element("tr", {}, ...values.map((value) => element(tag, tag === "th" ? { scope: "col" } : {}, value)));
  find("preview").replaceChildren(
    element("caption", { class: "hidden" }, "First rows"),
    element("thead", {}, row(columns, "th")),
    element("tbody", {}, ...preview.map((values) => row(values, "td"))),
  );
}

/** Add the labels of a pasted list or of a file with a name; the server reads it. Returns whether it worked. */
function addLabels(text, name = null) {
  return attempt(async () => {
    const { labels } = await request("POST", "/api/labels", { text, name });
    editor.add(labels, text);
    find("labels-read").textContent = `${several(labels.length, "label")} read.`;
  });
}

async function addList() {
  const list = document.getElementById("listed");
  if (!(await addLabels(list.value))) return;
  list.value = "";
  find("label-list").open = false;
  find("run").focus();
}

const addLabelFile = (file) =>
  attempt(async () => {
    let text;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      throw new Problem(`${file.name} cannot be read as UTF-8 text.`, 400);
    }
    await addLabels(text, file.name);
  });

function showOptions({ encoder, none_share: share }) {
  const { elements } = find("setup-form");
  elements.encoder.value = encoder ?? page.status.encoder;
  elements.none.value = Math.round(1000 * (share ?? 0)) / 10;
  describeOptions();
}

function describeOptions() {
  const { encoder, none } = find("setup-form").elements;
  const { about, languages } = page.status.encoders.find(({ name }) => name === encoder.value);
  find("encoder-about").textContent = languages.length ? `${about} (${languages.join(", ")})` : about;
  find("options-summary").textContent = `Options: ${encoder.value} encoder, ${Number(none.value) ? `${none.value}% none of these` : "every document gets a label"}`;
}

const chosenColumns = () => Array.from(find("columns").querySelectorAll("input:checked"), (input) => input.value);

/** Classify with the labels of the editor. */
async function run() {
  await attempt(async () => {
    const columns = chosenColumns();
    if (!columns.length) throw new Problem("Choose at least one column that has the text.", 400);
    if (editor.typedList() && !(await addLabels(editor.typedList()))) return;
    const { encoder, none } = find("setup-form").elements;
    page.session = await page.api.run({
      columns,
      labels: editor.get(),
      encoder: encoder.value,
      none_share: none.value / 100 || null,
    });
    await follow();
  });
}

/** Show the progress of the running job, then what it found. */
async function follow(show = showResult) {
  find("cancel").hidden = false;
  setBusy(true);
  try {
    let job = await page.api.job();
    let pause = FIRST_POLL;
    while (job.state === "waiting" || job.state === "running") {
      const of = job.total ? ` of ${count(job.total)}` : "";
      const text = job.done ? `${count(job.done)}${of} ${job.unit}` : job.state === "waiting" ? "Other jobs come first." : "";
      showStage(job.stage, text, job.done, job.total);
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(1.5 * pause, LONGEST_POLL);
      job = await page.api.job();
    }
    page.session = await page.api.state();
    if (job.state === "failed") throw new Problem(job.error, 400);
    if (job.state === "done") await show();
    else find("about").textContent = `${page.session.name}: cancelled`;
  } finally {
    find("progress").hidden = true;
    setBusy(false);
    updatePanel();
    // A button that is now disabled would swallow the keys.
    if (document.activeElement?.disabled) find("map").focus({ preventScroll: true });
  }
}

function setBusy(busy) {
  for (const name of ["run", "refine", "undo", "suggest"]) find(name).disabled = busy;
  document.body.toggleAttribute("data-busy", busy);
}

/** Look for suggestions and show them. */
const suggest = () =>
  attempt(async () => {
    await page.api.suggest();
    await follow(showSuggested);
  });

async function showSuggested() {
  showSuggestions(find("suggested"), await page.api.suggestions(), (name, phrases) => {
    editor.describe(name, phrases);
    find("labels-read").textContent = `Added to the labels: ${phrases.join("; ") || name}. Classify again to use it.`;
  });
}

async function showResult() {
  const view = await page.api.view();
  const first = page.result === null;
  if (!first && !page.result.fits(view)) return location.reload();
  for (const name of ["result", "summary", "skip", "suggestions"]) find(name).hidden = false;
  if (first) {
    page.result = createResult(view);
    page.panel = createPanel(page.result, { correct, undo, refine, load });
  } else page.result.update(view);
  const { name, rows } = page.session;
  const labels = view.labels.filter(({ id }) => id !== null);
  find("about").textContent = `${name}, ${several(rows, "row")}, ${labels.length} labels`;
  find("data").open = false;
  find("run").textContent = "Classify again";
  editor.set(
    labels,
    labels.map((label) => label.after),
  );
  find("labels-read").textContent = "";
  find("suggested").replaceChildren();
  updatePanel();
  find("said").textContent = `${count(labelledDocuments(view))} documents have a label.`;
  if (first) {
    applyAddress(page.result.store);
    followStore(page.session.id, page.result.store);
  }
  setDownloads();
  window.ulrPage = { ...page.result, page };
}

function updatePanel() {
  if (!page.result) return;
  page.result.correct(page.session.corrections);
  page.panel.update(page.session);
  setDownloads();
}

// Corrections are sent one after the other, however fast the keys are pressed.
let last = Promise.resolve();
function inOrder(action) {
  last = last.then(() => attempt(action));
  return last;
}

const correct = (documents, label) =>
  inOrder(async () => {
    const rows = documents.map((i) => page.result.store.documents.row[i]);
    page.session = await page.api.correct(rows, label);
    updatePanel();
  });

/** Rows that have another correction than before. */
function changedRows(before, after) {
  const [old, now] = [before, after].map((all) => new Map(all.map(({ row, label }) => [row, label])));
  return [...new Set([...old.keys(), ...now.keys()])].filter((row) => old.get(row) !== now.get(row));
}

function undo() {
  if (find("undo").disabled) return;
  return inOrder(async () => {
    const before = page.session.corrections;
    page.session = await page.api.undo();
    const plain = (labels) => JSON.stringify(labels.filter(({ id }) => id !== null).map(({ id, name, phrases }) => [id, name, phrases]));
    find("said").textContent = "Undone.";
    if (plain(page.session.labels) === plain(page.result.view.labels)) {
      updatePanel();
      return page.panel.show(changedRows(before, page.session.corrections));
    }
    editor.set(page.session.labels);
    await run();
  });
}

function refine() {
  if (!find("refine").disabled) run();
}

/** Something of a document, such as its whole text; null if it cannot be had. */
async function load(what, row) {
  try {
    return await page.api[what](row);
  } catch (problem) {
    showProblem(problem.message);
    return null;
  }
}

function setDownloads() {
  const format = find("downloads").elements.format.value;
  for (const link of find("downloads").querySelectorAll("a[data-what]")) {
    const { what } = link.dataset;
    const none = what === "examples" && !page.session.corrections.length;
    if (none) link.removeAttribute("href");
    else link.href = page.api.downloadPath(what, what === "table" ? format : "");
    link.setAttribute("aria-disabled", none);
  }
}

function connect() {
  find("file").addEventListener("change", (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) upload(file, file.name);
  });
  const drop = find("drop");
  for (const [kind, over] of Object.entries({ dragover: true, dragleave: false, drop: false }))
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", over);
      const file = event.dataTransfer?.files[0];
      if (kind === "drop" && file) upload(file, file.name);
    });
  const paste = find("paste");
  paste.elements.text.addEventListener("paste", () =>
    setTimeout(() => {
      // Rows that were copied from a spreadsheet have tabs.
      if (/^[^\n]*\t/.test(paste.elements.text.value)) paste.elements.kind.value = "table";
    }),
  );
  paste.addEventListener("submit", (event) => {
    event.preventDefault();
    const { text, kind } = paste.elements;
    if (!text.value.trim()) return showProblem("There is no text to use; paste some first.");
    upload(new Blob([text.value]), kind.value === "txt" ? "pasted.txt" : "pasted");
  });
  find("add-list").addEventListener("click", addList);
  find("label-file").addEventListener("change", (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) addLabelFile(file);
  });
  find("suggest").addEventListener("click", suggest);
  find("options").addEventListener("input", describeOptions);
  find("example").addEventListener("click", () => upload(null, "the example"));
  find("setup-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!find("run").disabled) run();
  });
  find("cancel").addEventListener("click", () => attempt(() => page.api.cancel()));
  find("problem").lastElementChild.addEventListener("click", () => (find("problem").hidden = true));
  find("restart").addEventListener("click", () => {
    addressSession(null);
    location.reload();
  });
  find("downloads").addEventListener("input", setDownloads);
  addEventListener("hashchange", () => {
    if (readAddress().get("session") !== (page.session?.id ?? null)) location.reload();
    else if (page.result) applyAddress(page.result.store);
  });
}

async function start() {
  connect();
  await attempt(async () => {
    page.status = await request("GET", "/api/status");
    const { version, encoder, predicts, limits } = page.status;
    find("limits").textContent = `CSV, Excel, JSON, Parquet or text; at most ${megabytes(limits.upload_bytes)} MB and ${count(limits.rows)} rows`;
    find("setup-form").elements.encoder.replaceChildren(
      ...page.status.encoders.map(({ name }) => element("option", { value: name }, name)),
    );
    find("footer").textContent = `ulr ${version}, ${encoder} encoder.${predicts ? " This server also answers POST /api/predict." : ""}`;
    const id = readAddress().get("session");
    if (id) await open(await sessionRequests(id).state());
  });
  if (page.session === null) find("start").hidden = false;
  document.body.dataset.ready = "true";
}

start();
