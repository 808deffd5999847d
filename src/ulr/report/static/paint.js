// What the map draws, in the pixels of a view.
import { shortened } from "./dom.js";
import { labelColor, pageColor } from "./colors.js";

const CIRCLE = 2 * Math.PI;

/** Radius of a document: smaller where there are many, larger when zoomed in. */
export function dotSize(n, zoom) {
  const small = n < 600 ? 4 : n < 2500 ? 3 : 2.2;
  return small * Math.min(2, zoom ** 0.35);
}

function paintDots(context, view, documents, indices, size) {
  context.beginPath();
  for (const i of indices) {
    const [x, y] = view.place(documents.x[i], documents.y[i]);
    context.moveTo(x + size, y);
    context.arc(x, y, size, 0, CIRCLE);
  }
  context.fill();
}

/** Draw the shown documents in the colours of their labels, and the others faintly. */
export function paintDocuments(context, view, { documents, shown, filter }) {
  const n = documents.row.length;
  const size = dotSize(n, view.zoom);
  if (shown.length < n) {
    const coloured = new Set(shown);
    const others = [...documents.row.keys()].filter((i) => !coloured.has(i));
    context.fillStyle = pageColor("faint");
    paintDots(context, view, documents, others, size * 0.8);
  }
  const groups = new Map();
  for (const i of shown) {
    const label = documents[filter.by][i];
    if (!groups.has(label)) groups.set(label, []);
    groups.get(label).push(i);
  }
  context.globalAlpha = n > 1500 ? 0.7 : 0.85;
  for (const [label, indices] of groups) {
    context.fillStyle = labelColor(label);
    paintDots(context, view, documents, indices, size);
  }
  context.globalAlpha = 1;
  return [...groups.values()].flat();
}

/** Draw the path of a label from its name to its refined place. */
export function paintPath(context, view, label, color) {
  const [ax, ay] = view.place(...label.anchor);
  const [cx, cy] = view.place(...label.centroid);
  context.strokeStyle = pageColor("text");
  context.lineWidth = 1.5;
  context.setLineDash([4, 3]);
  paintLine(context, [
    [ax, ay],
    [cx, cy],
  ]);
  context.setLineDash([]);
  paintRing(context, [ax, ay], 5);
  context.fillStyle = color;
  context.fill();
  if (Math.hypot(cx - ax, cy - ay) < 12) return;
  const angle = Math.atan2(cy - ay, cx - ax);
  const tip = [0, 2.7, -2.7].map((turn, i) => {
    const length = i ? 10 : 0;
    return [cx + length * Math.cos(angle + turn), cy + length * Math.sin(angle + turn)];
  });
  context.fillStyle = pageColor("text");
  paintLine(context, tip, true);
  context.fill();
}

/** Write the names of the labels, those of large ones first, where there is space. */
export function paintNames(context, view, labels) {
  const taken = [];
  Object.assign(context, { font: "600 13px system-ui, sans-serif", textAlign: "center", textBaseline: "middle" });
  Object.assign(context, {
    lineWidth: 4,
    lineJoin: "round",
    strokeStyle: pageColor("panel"),
    fillStyle: pageColor("text"),
  });
  const named = labels.filter((label) => label.centroid && label.after);
  for (const label of named.sort((a, b) => b.after - a.after)) {
    const name = shortened(label.name, 28);
    const half = context.measureText(name).width / 2 + 3;
    const [px, py] = view.place(...label.centroid);
    if (px < 0 || py < 0 || px > view.size[0] || py > view.size[1]) continue;
    const x = Math.min(Math.max(px, half), view.size[0] - half);
    const y = Math.min(Math.max(py - 14, 10), view.size[1] - 10);
    const overlaps = (other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - y) < 18;
    if (taken.some(overlaps)) continue;
    taken.push({ x, y, half });
    context.strokeText(name, x, y);
    context.fillText(name, x, y);
  }
}

export function paintLine(context, pixels, closed = false) {
  context.beginPath();
  pixels.forEach((pixel) => context.lineTo(...pixel));
  if (closed) context.closePath();
  context.stroke();
}

export function paintRing(context, pixel, radius) {
  context.beginPath();
  context.arc(...pixel, radius, 0, CIRCLE);
  context.stroke();
}
