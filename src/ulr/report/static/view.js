// Where documents are on the canvas: zoom and pan.

const MARGIN = 26;
const MOST_ZOOM = 40;

// Distances on the map have no unit, so each axis fills the canvas.
function axis(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  return { middle: (low + high) / 2, extent: high - low || 1 };
}

/** A view of points with the coordinates `xs` and `ys`; at first all of them. */
export function createView(xs, ys) {
  const axes = [axis(xs), axis(ys)];
  const view = {
    zoom: 1,
    centre: axes.map(({ middle }) => middle),
    size: [1, 1],

    /** Pixels per unit of an axis. */
    scale: (i) => (Math.max(1, view.size[i] - 2 * MARGIN) * view.zoom) / axes[i].extent,

    /** The pixel of a point. */
    place: (...point) => point.map((at, i) => (at - view.centre[i]) * view.scale(i) + view.size[i] / 2),

    /** The point of a pixel. */
    unplace: (...pixel) => pixel.map((at, i) => (at - view.size[i] / 2) / view.scale(i) + view.centre[i]),

    /** Move by pixels, as far as there are points. */
    move(...pixels) {
      const most = (1 - 1 / view.zoom) / 2;
      view.centre = axes.map(({ middle, extent }, i) => {
        const wanted = view.centre[i] + pixels[i] / view.scale(i);
        return Math.min(middle + most * extent, Math.max(middle - most * extent, wanted));
      });
    },

    /** Zoom in or out; the point under a pixel stays there. */
    zoomBy(factor, ...pixel) {
      const point = view.unplace(...pixel);
      view.zoom = Math.min(MOST_ZOOM, Math.max(1, view.zoom * factor));
      const now = view.place(...point);
      view.move(now[0] - pixel[0], now[1] - pixel[1]);
    },
  };
  return view;
}
