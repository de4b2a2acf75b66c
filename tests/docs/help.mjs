// What --help shows, of every command: flags, and examples, which are a page like the others, called `help` in the table.
import { spawnSync } from "node:child_process";

export function helpTexts(deeptail, path = []) {
  const text = spawnSync(deeptail, [...path, "--help"], { encoding: "utf8" }).stdout;
  const below = [...text.split(/^Examples?:/m)[0].matchAll(/^  ([a-z]+)(?: {2,}|$)/gm)].map((m) => m[1]);
  return [text, ...below.flatMap((name) => helpTexts(deeptail, [...path, name]))];
}

export const flagsOf = (texts) => new Set(texts.join("\n").match(/--[a-z][a-z0-9-]*/g));

export function examples(texts) {
  const lines = texts.flatMap((text) => (text.split(/^Examples?:\n/m)[1] ?? "").split("\n"));
  return [...new Set(lines.filter((line) => line.startsWith("  deeptail ")))].map((line, i) => ({ line: i + 1, shell: line.trim(), stated: null }));
}
