// Why a text has its label: the words that spoke for it, and those for the runner-up.
import { element } from "./dom.js";
import { labelColor } from "./colors.js";

// As the server finds words: pieces between blanks, without punctuation around them.
const PIECES = /(\s+)/;
const CORE = /[\p{L}\p{N}_](?:.*[\p{L}\p{N}_])?/su;

const LEAST = 0.25; // of the largest weight in the text

const colorOf = (name, labels) => labelColor(labels.findIndex((label) => label.name === name));

/** Both labels of an explanation with their words, without those that hardly mattered. */
function sides(why) {
  if (!why?.label) return [];
  const least = LEAST * Math.max(0, ...[...why.for_label, ...why.for_runner_up].map(({ weight }) => weight));
  const words = (evidence) => evidence.filter(({ weight }) => weight >= least).map(({ word }) => word);
  return [
    [why.label, words(why.for_label)],
    [why.runner_up, words(why.for_runner_up)],
  ].filter(([, own]) => own.length);
}

/** A text with these words marked in the colours of the labels. */
export function withReasons(text, why, labels) {
  const owners = new Map();
  for (const [name, words] of sides(why)) for (const word of words) owners.set(word.toLowerCase(), name);
  if (!owners.size) return [text];
  return text.split(PIECES).flatMap((piece) => {
    const [core] = CORE.exec(piece) ?? [piece];
    const name = owners.get(core.toLowerCase());
    if (!name) return [piece];
    const [before, after] = piece.split(core);
    return [before, element("mark", { class: "why", title: `for ${name}`, "--color": colorOf(name, labels) }, core), after];
  });
}

/** The same words as a sentence for each label. */
export function reasonLine(why, labels) {
  const side = ([name, words]) => [
    element("span", { class: "tag", "--color": colorOf(name, labels) }, `${name}:`),
    ` ${words.join(", ")}. `,
  ];
  return sides(why).flatMap(side);
}
