// Elements and numbers. Texts only ever become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An HTML element; attributes that begin with "on" are listeners, with "--" CSS variables. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export const count = (value) => value.toLocaleString("en-US");
export const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)}%`;

export function shortened(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1).trimEnd()}…`;
}

/** Call `draw` now and whenever the width of a node changes. */
export function whenResized(node, draw) {
  let width = -1;
  new ResizeObserver(() => {
    if (node.clientWidth === width) return;
    width = node.clientWidth;
    if (width > 0) draw(width);
  }).observe(node);
}

/** A picture; `label` says what it shows, and that a table repeats its figures. */
export function picture(width, height, label) {
  const box = { viewBox: `0 0 ${width} ${height}`, width, height };
  return shape("svg", { ...box, role: "img", "aria-label": label, class: "picture" });
}

/** A text in a picture; `kind` has classes of the style sheet: muted, end, middle, central. */
export const caption = (x, y, kind, ...content) => shape("text", { x, y, class: kind }, ...content);
