// node run.mjs DEEPTAIL SOURCE [--record]: runs the list in `commands` and compares what is printed with tests/data/golden/NAME.json,
// number by number to the bit. Times, versions and paths are left out. --record writes the files anew.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [deeptail, source, flag] = process.argv.slice(2);
const folder = join(source, "tests/data/golden");
const out = mkdtempSync(join(tmpdir(), "golden-"));
const leftOut = new Set(["seconds", "created", "version", "command", "target_text", "device"]);

// A long list by its hash.
const shortened = (value) =>
  Array.isArray(value) && value.length > 64 ? createHash("sha256").update(JSON.stringify(value)).digest("hex") : value;

// JSON as it is, but for keys that differ from run to run; other text line by line, without columns of seconds.
function comparable(text) {
  try {
    return JSON.stringify(JSON.parse(text, (key, value) => (leftOut.has(key) ? undefined : shortened(value))), null, 1);
  } catch {
    const rows = text.trimEnd().split("\n").map((line) => line.split(","));
    const kept = rows[0].map((name, i) => (name.includes("seconds") ? -1 : i)).filter((i) => i >= 0);
    return rows.map((row) => kept.map((i) => row[i]).join(",")).join("\n");
  }
}

// Arguments as a shell would take them, without its other powers.
const words = (line) => line.trim().split(/\s+/).map((w) => w.replace("OUT", out).replace("SOURCE", source));

function printed(step) {
  const run = spawnSync(deeptail, words(step), { cwd: source, encoding: "utf8", maxBuffer: 1 << 26 });
  if (run.status !== 0 && run.status !== 4) throw new Error(`deeptail ${step}: exit code ${run.status}: ${run.stderr}`); // 4: budget spent
  return run.stdout;
}

function result(steps) {
  let text = "";
  for (const step of steps) text = step.includes(" ") ? printed(step) : readFileSync(words(step)[0], "utf8");
  return comparable(text) + "\n";
}

let failed = 0, passed = 0;
mkdirSync(folder, { recursive: true });
try {
  for (const line of readFileSync(join(source, "tests/golden/commands"), "utf8").split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [name, rest] = [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)];
    const file = join(folder, `${name}.json`), found = result(rest.split(" ; ").map((s) => s.trim()));
    if (flag === "--record") writeFileSync(file, found);
    const expected = existsSync(file) ? readFileSync(file, "utf8") : "";
    if (found === expected) { ++passed; continue; }
    ++failed;
    const [a, b] = [expected.split("\n"), found.split("\n")], at = a.findIndex((x, i) => x !== b[i]);
    console.error(`${name}: line ${at + 1}: expected ${a[at]}, found ${b[at]}`);
  }
} finally {
  rmSync(out, { recursive: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
