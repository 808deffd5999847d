// The map of documents on a canvas: hover, zoom, pan, selection of a region, keyboard.
import { count, percent } from "./dom.js";
import { labelColor, pageColor, whenColorsChange } from "./colors.js";
import { labelName } from "./store.js";
import { createView } from "./view.js";
import { dotSize, paintDocuments, paintLine, paintNames, paintPath, paintRing } from "./paint.js";

const REACH = 14;
const ZOOM_STEP = 1.5;
const PAN_STEP = 80;
const MOST_CORNERS = 48;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Label, confidence and row of a document in one line. */
export function summary({ documents, labels }, i) {
  const [label, before] = [documents.label[i], documents.unrefined[i]];
  const by = before === label ? "" : `, by name ${labelName(labels, before)}`;
  const note = documents.notes?.[i] ? `; ${documents.notes[i]}` : "";
  return `${labelName(labels, label)} (${percent(documents.confidence[i])})${by}; row ${count(documents.row[i])}${note}`;
}

/** A drawn line with fewer points and digits, so that it fits into an address. */
function simplified(points) {
  const step = Math.ceil(points.length / MOST_CORNERS);
  return points.filter((_, i) => i % step === 0).map((point) => point.map((at) => Number(at.toFixed(4))));
}

/**
 * Draw the documents of a store.
 * `parts`: the canvas, a tooltip, and a live region that names the active document.
 */
export function createMap({ canvas, tooltip, live }, store) {
  const { documents, labels } = store;
  const context = canvas.getContext("2d");
  const view = createView(documents.x, documents.y);
  const options = { paths: true, lasso: false };
  const placeOf = (i) => view.place(documents.x[i], documents.y[i]);
  let drawn = [];
  let drag = null;
  let frame = 0;

  function draw() {
    frame = 0;
    const ratio = devicePixelRatio || 1;
    view.size = [canvas.clientWidth, canvas.clientHeight];
    const [width, height] = view.size.map((length) => Math.round(length * ratio));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, ...view.size);
    drawn = paintDocuments(context, view, store);
    if (options.paths) {
      labels.forEach((label, i) => label.anchor && paintPath(context, view, label, labelColor(i)));
    }
    paintNames(context, view, labels);
    drawSelection();
    showTooltip();
  }

  function drawSelection() {
    const outline = drag?.line ?? store.filter.region?.map((point) => view.place(...point));
    context.lineWidth = 2;
    context.strokeStyle = pageColor("accent");
    if (outline) paintLine(context, outline, true);
    context.strokeStyle = pageColor("text");
    if (store.active >= 0) paintRing(context, placeOf(store.active), dotSize(documents.row.length, view.zoom) + 4);
  }

  function showTooltip() {
    const i = store.active;
    tooltip.hidden = i < 0;
    if (i < 0) return;
    tooltip.firstElementChild.textContent = summary(store, i);
    tooltip.lastElementChild.textContent = documents.text[i];
    const [x, y] = placeOf(i);
    const left = Math.min(x - tooltip.offsetWidth / 2, view.size[0] - tooltip.offsetWidth - 4);
    tooltip.style.left = `${Math.max(4, left)}px`;
    tooltip.style.top = `${y < view.size[1] / 2 ? y + 14 : y - tooltip.offsetHeight - 14}px`;
  }

  const redraw = () => {
    frame ||= requestAnimationFrame(draw);
  };

  /** The shown document with the least `cost(dx, dy)` from a pixel; -1 where all are infinite. */
  function nearest([px, py], cost) {
    let best = -1;
    let least = Infinity;
    for (const i of store.shown) {
      const [x, y] = placeOf(i);
      const found = cost(x - px, y - py);
      if (found < least) [best, least] = [i, found];
    }
    return best;
  }

  const hit = (pixel) => nearest(pixel, (dx, dy) => (Math.hypot(dx, dy) < REACH ? Math.hypot(dx, dy) : Infinity));

  /** The next document in a direction; without an active one, the most central. */
  function neighbour(right, down) {
    if (store.active < 0)
      return nearest(
        view.size.map((length) => length / 2),
        Math.hypot,
      );
    return nearest(placeOf(store.active), (dx, dy) => {
      const along = dx * right + dy * down;
      const aside = Math.abs(dx * down) + Math.abs(dy * right);
      return along <= 0 || aside > 2 * along ? Infinity : along + 2 * aside;
    });
  }

  function zoomBy(factor, pixel = view.size.map((length) => length / 2)) {
    view.zoomBy(factor, ...pixel);
    redraw();
  }

  function step(right, down) {
    const next = neighbour(right, down);
    if (next < 0) return;
    store.setActive(next);
    live.textContent = `${summary(store, next)}: ${documents.text[next]}`;
  }

  function clear() {
    store.setActive(-1);
    if (store.filter.region) store.setFilter({ region: null });
  }

  const KEYS = {
    "+": () => zoomBy(ZOOM_STEP),
    "=": () => zoomBy(ZOOM_STEP),
    "-": () => zoomBy(1 / ZOOM_STEP),
    0: () => zoomBy(0),
    Enter: () => store.active >= 0 && store.setActive(store.active, true),
    Escape: clear,
  };

  canvas.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(arrow || KEYS[event.key])) return;
    event.preventDefault();
    if (!arrow) KEYS[event.key]();
    else if (event.shiftKey) {
      view.move(PAN_STEP * arrow[0], PAN_STEP * arrow[1]);
      redraw();
    } else step(...arrow);
  });

  const pixelOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("pointerdown", (event) => {
    const lasso = options.lasso || event.shiftKey;
    if (event.pointerType === "touch" && !lasso) return;
    drag = { from: pixelOf(event), moved: false, line: lasso ? [pixelOf(event)] : null };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const pixel = pixelOf(event);
    if (!drag) return store.setActive(hit(pixel));
    const [dx, dy] = [pixel[0] - drag.from[0], pixel[1] - drag.from[1]];
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag.moved = true;
    if (drag.line) drag.line.push(pixel);
    else {
      view.move(-dx, -dy);
      drag.from = pixel;
    }
    redraw();
  });
  canvas.addEventListener("pointerup", () => {
    const line = drag?.moved ? drag.line : null;
    // The click that follows must still see whether the map was dragged.
    setTimeout(() => {
      drag = null;
      redraw();
    });
    if (line?.length > 2) store.setFilter({ region: simplified(line.map((pixel) => view.unplace(...pixel))) });
  });
  canvas.addEventListener("pointercancel", () => {
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => {
    if (!drag && document.activeElement !== canvas) store.setActive(-1);
  });
  canvas.addEventListener("click", (event) => {
    const i = drag?.moved ? -1 : hit(pixelOf(event));
    if (i >= 0) store.setActive(i, true);
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      // The page scrolls unless the map has been clicked or Ctrl is held.
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      zoomBy(1.0015 ** -event.deltaY, pixelOf(event));
    },
    { passive: false },
  );

  store.subscribe(redraw);
  new ResizeObserver(redraw).observe(canvas);
  whenColorsChange(draw);
  draw();

  return {
    view,
    draw,
    zoomBy,
    placeOf,
    drawn: () => [...drawn],
    setOptions(change) {
      Object.assign(options, change);
      redraw();
    },
  };
}
