// Charts of confidence and of the comparison with true labels.
import { caption, count, percent, picture, shape, whenResized } from "./dom.js";

const SPACE = { left: 52, right: 22, top: 12, bottom: 42 };
const QUARTERS = [0, 0.25, 0.5, 0.75, 1];

/** A chart with an axis of confidence from 0 to 1, and a vertical one with the given ticks. */
function axes(width, height, label, ticks) {
  const x = (value) => SPACE.left + value * (width - SPACE.left - SPACE.right);
  const y = (share) => SPACE.top + (1 - share) * (height - SPACE.top - SPACE.bottom);
  const image = picture(width, height, `${label}. The table below has the same figures.`);
  for (const [share, text] of ticks) {
    image.append(shape("line", { x1: x(0), x2: x(1), y1: y(share), y2: y(share), class: "rule" }));
    image.append(caption(SPACE.left - 6, y(share), "muted end central", text));
  }
  for (const value of QUARTERS) image.append(caption(x(value), y(0) + 18, "muted middle", percent(value)));
  image.append(caption(x(0.5), height - 4, "muted middle", "confidence"));
  return { image, x, y };
}

/** Documents by equal intervals of confidence; those that refinement moved are on top. */
export function drawHistogram(container, bins) {
  const most = Math.max(1, ...bins.map(([stayed, moved]) => stayed + moved));
  const ticks = [0, 0.5, 1].map((share) => [share, count(Math.round(share * most))]);
  whenResized(container, (width) => {
    const { image, x, y } = axes(width, 220, "Documents by confidence", ticks);
    bins.forEach(([stayed, moved], i) => {
      const [low, high] = [i / bins.length, (i + 1) / bins.length];
      const title = `${percent(low)} to ${percent(high)}: ${count(stayed)} kept their label, ${count(moved)} moved`;
      const across = { x: x(low) + 1, width: Math.max(1, x(high) - x(low) - 2) };
      const bar = (from, to, kind) => {
        const down = { y: y(to / most), height: y(from / most) - y(to / most) };
        image.append(shape("rect", { ...across, ...down, class: kind }, shape("title", {}, title)));
      };
      bar(0, stayed, "stayed");
      bar(stayed, stayed + moved, "moved");
    });
    container.replaceChildren(image);
  });
}

/** Accuracy by confidence: on the diagonal, the confidence is right. */
export function drawReliability(container, bins) {
  const most = Math.max(1, ...bins.map((bin) => bin.documents));
  const ticks = QUARTERS.map((share) => [share, percent(share)]);
  whenResized(container, (width) => {
    const { image, x, y } = axes(width, 280, "Accuracy by confidence", ticks);
    image.append(shape("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "diagonal" }));
    const points = bins.map((bin) => `${x(bin.confidence)},${y(bin.accuracy)}`).join(" ");
    image.append(shape("polyline", { points, class: "curve" }));
    for (const { confidence, accuracy, documents } of bins) {
      const title = `confidence ${percent(confidence)}, accuracy ${percent(accuracy)}, ${count(documents)} documents`;
      const dot = { cx: x(confidence), cy: y(accuracy), r: 3 + 6 * Math.sqrt(documents / most), class: "dot" };
      image.append(shape("circle", dot, shape("title", {}, title)));
    }
    container.replaceChildren(image);
  });
}

/** Shade the cells of a confusion table by their share of the row (the attribute `data-share`). */
export function shadeConfusion(table) {
  for (const cell of table.querySelectorAll("td[data-share]")) {
    cell.style.setProperty("--share", `${Math.round(45 * Number(cell.dataset.share))}%`);
    cell.classList.add("shaded");
  }
}
