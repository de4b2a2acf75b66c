// What a page states against what was printed, to the letter but for times, dates and lines that are `...`.

const comparable = (line) =>
  line.trimEnd()
    .replace(/\b\d+(\.\d+)? (ms|s|min|h)\b/g, "TIME")
    .replace(/\b\d{4}-\d\d-\d\d(T[\d:]+Z)?/g, "DATE");

// null, or the first difference in words. `...` stands for any number of lines.
export function difference(stated, printed) {
  const want = stated.map(comparable), found = printed.trimEnd().split("\n").map(comparable);
  let at = 0;
  for (let i = 0; i < want.length; ++i) {
    if (want[i].trim() === "...") {
      if (i + 1 === want.length) return null;
      const next = found.indexOf(want[i + 1], at);
      if (next < 0) return `after ...: expected "${stated[i + 1]}", which is not printed`;
      at = next;
    } else if (want[i] !== found[at++]) {
      return `line ${i + 1}: the page has "${stated[i]}", the program prints "${found[at - 1] ?? "nothing more"}"`;
    }
  }
  return at === found.length ? null : `the program goes on: "${found[at]}"`;
}
