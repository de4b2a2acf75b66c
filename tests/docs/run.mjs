// node run.mjs DEEPTAIL SOURCE [--quick] [--page PAGE] [--times]: runs every command of README.md, CONTRIBUTING.md, models/README.md and
// docs/*.md, and the examples of --help, page by page in a folder of its own, and compares what it prints where the page states it (a `$ ` line and the lines below it).
// Commands that take long, or need what is not at hand, are shortened by the table beside this script. --quick: the part that `make test` runs.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { difference } from "./compare.mjs";
import { examples, flagsOf, helpTexts } from "./help.mjs";
import { commandsOf, named, written } from "./pages.mjs";
import { readTable, runInstead } from "./table.mjs";

const [deeptail, source] = process.argv.slice(2, 4).map((path) => resolve(path));
const quick = process.argv.includes("--quick"), times = process.argv.includes("--times");
const only = process.argv.includes("--page") ? process.argv[process.argv.indexOf("--page") + 1] : null;
const limitSeconds = quick ? 60 : 1200;  // many times what an idle machine needs: hung, not slow

const docs = readdirSync(join(source, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);
const pages = ["README.md", "CONTRIBUTING.md", "models/README.md", ...docs].filter((page) => !only || page === only);
const table = readTable(readFileSync(join(source, "tests/docs/shortened"), "utf8"));
const targets = new Set([...readFileSync(join(source, "Makefile"), "utf8").matchAll(/^([a-z-]+):/gm)].map((m) => m[1]));

const help = helpTexts(deeptail), flags = flagsOf(help);
const tree = ["src", "include", "tests", "scripts", "bench", "training", "examples", "cmake", "python"].flatMap((folder) =>
  readdirSync(join(source, folder), { recursive: true }).map((file) => `/${folder}/${file}`));

const faults = [];
const count = { run: 0, compared: 0, skipped: 0 };

// A folder as the reader of a page has it: the tree's data, and the program on the path.
function folderForPage() {
  const folder = mkdtempSync(join(tmpdir(), "docs-"));
  for (const name of ["models", "distributions", "truth", "docs", "examples", "scripts", "tests", "training"]) symlinkSync(join(source, name), join(folder, name));
  cpSync(join(source, "suites"), join(folder, "suites"), { recursive: true });  // a copy: one command writes into it
  mkdirSync(join(folder, "build"));
  symlinkSync(deeptail, join(folder, "build/deeptail"));
  return folder;
}

function shell(folder, line) {
  const env = { ...process.env, PATH: `${folder}/build:${process.env.PATH}`, LC_ALL: "C.UTF-8", DEEPTAIL_HOME: undefined };
  const started = Date.now();
  const run = spawnSync("bash", ["-c", line], { cwd: folder, env, encoding: "utf8", timeout: limitSeconds * 1000, maxBuffer: 1 << 26 });
  if (times) console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(7)} s  ${line.split("\n")[0]}`);
  return run;
}

// null, or what is wrong.
function fault(folder, line, stated) {
  const run = shell(folder, line);
  if (run.error) return `${run.error.code === "ETIMEDOUT" ? `not done after ${limitSeconds} s` : run.error.message}`;
  if (run.status !== 0) return `exit code ${run.status}: ${run.stderr.trim().split("\n").at(-1)}`;
  return stated && difference(stated, run.stdout);
}

function runPage(page, commands) {
  const rows = table[page], folder = folderForPage();
  try {
    for (const line of rows?.prepare ?? []) {
      const wrong = fault(folder, line, null);
      if (wrong) faults.push(`${page}: prepare: ${line}: ${wrong}`);
    }
    for (const { line, shell: command, stated } of commands) {
      const instead = runInstead(rows, written(command), quick);
      if (instead === null) { ++count.skipped; continue; }
      const wrong = fault(folder, instead ?? command, instead === undefined ? stated : null);
      ++count.run;
      if (instead === undefined && stated) ++count.compared;
      if (wrong) faults.push(`${page}:${line}: ${written(instead ?? command)}: ${wrong}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function checkNames(page) {
  const { flags: asked, targets: makes, files, links } = named(readFileSync(join(source, page), "utf8"));
  for (const flag of asked) if (!flags.has(flag)) faults.push(`${page}: ${flag}: no command has such a flag`);
  for (const name of makes) if (!targets.has(name)) faults.push(`${page}: make ${name}: the Makefile has no such target`);
  for (const file of files) if (!tree.some((path) => path.endsWith(`/${file}`))) faults.push(`${page}: ${file}: there is no such file`);
  for (const link of links) if (!existsSync(join(source, dirname(page), link))) faults.push(`${page}: the link ${link} leads nowhere`);
}

for (const page of pages) runPage(page, commandsOf(readFileSync(join(source, page), "utf8")));
if (!only || only === "help") runPage("help", examples(help));
for (const page of only ? pages : [...pages, "src/README.md"]) checkNames(page);
for (const [page, rows] of Object.entries(table))
  for (const row of rows.instead)
    if (!row.used && (!only || page === only)) faults.push(`shortened:${row.line}: ${page} has no command ${row.command}`);

for (const text of faults) console.error(text);
console.log(`${count.run} commands run, ${count.compared} outputs compared, ${count.skipped} skipped, ${faults.length} faults`);
process.exit(faults.length ? 1 : 0);
