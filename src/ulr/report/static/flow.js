// Label sizes before and after refinement, with ribbons for the documents between them.
import { caption, count, picture, shape, shortened, whenResized } from "./dom.js";
import { labelColor, whenColorsChange } from "./colors.js";

const MOST_LABELS = 14;
const TOP = 24;
const BAR = 12;
const GAP = 6;
const SLOT = 15;
const LETTER = 7.2;
const DESCRIPTION =
  "Label sizes by name and refined, with the documents that moved between them. " +
  "The tables beside it have the same figures.";

/** The largest labels, all others as one entry, and the flows between these entries. */
export function largestLabels(labels, flows) {
  const size = (i) => labels[i].before + labels[i].after;
  let kept = [...labels.keys()];
  if (kept.length > MOST_LABELS) kept = kept.sort((a, b) => size(b) - size(a)).slice(0, MOST_LABELS - 1);
  const entries = kept.map((label) => ({ label, name: labels[label].name, before: 0, after: 0 }));
  if (kept.length < labels.length) entries.push({ label: -1, name: "other labels", before: 0, after: 0 });
  const entryOf = new Map(kept.map((label, i) => [label, i]));
  const merged = entries.map(() => entries.map(() => 0));
  for (const [before, after, n] of flows) {
    const [from, to] = [before, after].map((label) => entryOf.get(label) ?? entries.length - 1);
    merged[from][to] += n;
    entries[from].before += n;
    entries[to].after += n;
  }
  return { entries, flows: merged };
}

/** Vertical places of bars of some sizes; each has space for a line of text. */
function stacked(sizes, scale) {
  let top = TOP;
  return sizes.map((size) => {
    const thick = Math.max(2, size * scale);
    const bar = { top, thick, used: top };
    top += Math.max(thick + GAP, SLOT);
    return bar;
  });
}

function ribbon(left, right, y0, y1, thick) {
  const middle = (left + right) / 2;
  const forth = `M${left},${y0}C${middle},${y0} ${middle},${y1} ${right},${y1}`;
  const back = `V${y1 + thick}C${middle},${y1 + thick} ${middle},${y0 + thick} ${left},${y0 + thick}Z`;
  return forth + back;
}

export function drawFlow(container, labels, allFlows) {
  const { entries, flows } = largestLabels(labels, allFlows);
  const total = Math.max(
    1,
    allFlows.reduce((sum, [, , n]) => sum + n, 0),
  );
  const digits = count(total).length;

  function draw(width) {
    const longest = Math.max(...entries.map(({ name }) => name.length)) + digits;
    const margin = Math.min(longest * LETTER + 16, Math.max(96, width * 0.3));
    const letters = Math.max(6, Math.floor((margin - 16) / LETTER) - digits);
    const height = Math.min(460, 130 + 26 * entries.length);
    const scale = (height - TOP - GAP - SLOT * entries.length) / total;
    const [left, right] = [margin + BAR, width - margin - BAR];
    const before = stacked(
      entries.map((entry) => entry.before),
      scale,
    );
    const after = stacked(
      entries.map((entry) => entry.after),
      scale,
    );
    const bottom = Math.max(...[before, after].map((bars) => bars.at(-1).top + bars.at(-1).thick));
    const image = picture(width, bottom + SLOT, DESCRIPTION);
    image.append(caption(left, 12, "muted end", "by name"), caption(right, 12, "muted", "refined"));
    flows.forEach((row, from) =>
      row.forEach((n, to) => {
        if (!n) return;
        const d = ribbon(left, right, before[from].used, after[to].used, n * scale);
        before[from].used += n * scale;
        after[to].used += n * scale;
        const look = { fill: labelColor(entries[from].label), "fill-opacity": from === to ? 0.22 : 0.6 };
        const title = `${entries[from].name} → ${entries[to].name}: ${count(n)} documents`;
        image.append(shape("path", { d, ...look }, shape("title", {}, title)));
      }),
    );
    entries.forEach((entry, i) => {
      const name = `${shortened(entry.name, letters)} `;
      const number = (n) => shape("tspan", { class: "muted" }, count(n));
      for (const [{ top, thick }, x] of [
        [before[i], margin],
        [after[i], right],
      ]) {
        image.append(shape("rect", { x, y: top, width: BAR, height: thick, fill: labelColor(entry.label) }));
      }
      const middle = ({ top, thick }) => top + thick / 2;
      image.append(caption(margin - 6, middle(before[i]), "central end", name, number(entry.before)));
      image.append(caption(right + BAR + 6, middle(after[i]), "central", name, number(entry.after)));
    });
    container.replaceChildren(image);
  }

  whenResized(container, draw);
  whenColorsChange(() => container.clientWidth && draw(container.clientWidth));
}
