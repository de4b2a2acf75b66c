// What a page asks its reader to type, and what else it says that can be checked.

// A page as pieces in their order: {code: true, line, lines} for a fenced or indented block, {code: false, line, lines} for prose.
export function pieces(text) {
  const out = [];
  let fenced = false, blank = true;
  const add = (code, line, text, fresh) => {
    const last = out.at(-1);
    if (fresh || !last || last.code !== code) out.push({ code, line, lines: [text] });
    else last.lines.push(text);
  };
  let fresh = false;
  text.split("\n").forEach((line, i) => {
    if (line.startsWith("```")) {
      fenced = !fenced;
      fresh = true;
    } else {
      const indented = line.startsWith("    ") && (blank || (out.at(-1)?.code && !fenced));
      const goesOn = line.trim() === "" && out.at(-1)?.code;  // a blank line inside or after a block
      add(fenced || indented || (goesOn && !fresh), i + 1, line, fresh);
      fresh = false;
    }
    blank = line.trim() === "";
  });
  return out;
}

const indent = (line) => line.length - line.trimStart().length;

// As the table beside the script names it: one line, single spaces, without the remark behind it.
export const written = (command) => command.replace(/\s+# .*$/, "").replace(/\s+/g, " ").trim();

// The lines below a `$ ` line that are indented at least like it, up to the next such line.
function statedOutput(lines, from, depth) {
  const out = [];
  for (let i = from; i < lines.length; ++i) {
    if (lines[i].trim() !== "" && (indent(lines[i]) < depth || lines[i].slice(depth).startsWith("$ "))) break;
    out.push(lines[i].slice(depth).trimEnd());
  }
  while (out.length && out.at(-1) === "") out.pop();
  return out;
}

function commandsOfBlock({ line, lines }) {
  const out = [];
  for (let i = 0; i < lines.length; ++i) {
    const start = lines[i].match(/^(\s*)(\$ )?((?:build\/)?deeptail .*|cat > .*)$/) ?? lines[i].match(/^(\s*)(\$ )(.*)$/);
    if (!start) continue;
    const at = line + i, depth = start[1].length;
    let shell = start[3];
    while (shell.endsWith("\\")) shell = shell.slice(0, -1) + lines[++i].trim();
    if (shell.includes("<<'END'"))
      do shell += "\n" + lines[++i].slice(depth);
      while (lines[i].trim() !== "END");
    const stated = start[2] ? statedOutput(lines, i + 1, depth) : [];
    i += stated.length;
    out.push({ line: at, shell, stated: stated.length ? stated : null });
  }
  return out;
}

// `deeptail ...` among words: a command when it has a flag, a file or a stand-in for one; otherwise only a name.
function commandsOfProse({ line, lines }) {
  const text = lines.join("\n"), out = [];
  for (const { 1: code, index } of text.matchAll(/`((?:build\/)?deeptail [^`]*)`/g))
    if (code.split(/\s+/).slice(1).some((word) => /^-|[./]|^[A-Z]+$/.test(word)))
      out.push({ line: line + text.slice(0, index).split("\n").length - 1, shell: code.replace(/\s+/g, " "), stated: null });
  return out;
}

// [{line, shell, stated: lines that it prints, or null}]
export const commandsOf = (text) => pieces(text).flatMap((p) => (p.code ? commandsOfBlock(p) : commandsOfProse(p)));

// Targets of make, flags, files of the tree (perhaps only the end of their path) and links that the page names.
export function named(text) {
  const code = pieces(text).flatMap((p) => (p.code ? p.lines : [...p.lines.join("\n").matchAll(/`([^`]*)`/g)].map((m) => m[1])));
  const prose = pieces(text).filter((p) => !p.code).map((p) => p.lines.join("\n")).join("\n");
  const all = (texts, pattern) => [...new Set(texts.flatMap((t) => [...t.matchAll(pattern)].map((m) => m[1])))];
  return {
    flags: all(code, /^(--[a-z][a-z0-9-]*)/g),
    targets: all(code, /(?:^|\s)make ([a-z][a-z-]*)/g),
    files: all(code, /(?<![\w./-])((?:[\w-]+\/)+[\w.-]+\.(?:cpp|h|cu|cuh|mjs|js|py|sh|cmake))\b/g),
    links: all([prose], /\]\(([^)#\s]+)(?:#[^)]*)?\)/g).filter((link) => !/^\w+:/.test(link)),
  };
}
