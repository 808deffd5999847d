// Colours of labels on light and dark backgrounds.

const LIGHT = "#2f66c9 #d9630f #22874a #b8356f #7650c4 #0b7f90 #8f6112 #c93636 #5c7a14 #4a5c8c".split(" ");
const DARK = "#7fa8ff #ff9d57 #5fd08a #ff8abb #bba2ff #52cfdd #dcb067 #ff8585 #b3cf55 #a9b9e6".split(" ");

const darkPage = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

/** Whether the page is dark; paper is light. */
export const isDark = () => darkPage.matches && !printing;

/** Call a function when the page becomes light or dark. */
export function whenColorsChange(redraw) {
  darkPage.addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    printing = true;
    redraw();
  });
  addEventListener("afterprint", () => {
    printing = false;
    redraw();
  });
}

/** The colour of a label by its position. */
export function labelColor(label) {
  if (label < 0) return isDark() ? "#8b8f98" : "#777b84";
  const few = isDark() ? DARK : LIGHT;
  if (label < few.length) return few[label];
  const hue = (label * 137.508) % 360;
  const lightness = (isDark() ? 68 : 40) + 8 * ((label % 3) - 1);
  return `hsl(${hue.toFixed(1)} 60% ${lightness}%)`;
}

// As in the style sheet, whose values for paper cannot be read before the page is printed.
const LIGHT_PAGE = { text: "#1b1f27", panel: "#ffffff", faint: "#dfe3ea", accent: "#2456b8" };
const DARK_PAGE = { text: "#e8eaf0", panel: "#1c1f26", faint: "#333845", accent: "#8fb4ff" };

/** A colour of the page, for the canvas. */
export const pageColor = (name) => (isDark() ? DARK_PAGE : LIGHT_PAGE)[name];
