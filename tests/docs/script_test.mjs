// What run.mjs takes from a page and how it compares: that it finds what is wrong.
import assert from "node:assert";
import { difference } from "./compare.mjs";
import { commandsOf, named, written } from "./pages.mjs";
import { readTable, runInstead } from "./table.mjs";

const page = `# Title

Say \`deeptail dist show hex\` or \`deeptail truth --seed 1\`; \`deeptail bench
export RUN\` is a command, too, and \`deeptail bench run\` is only a name. See [there](docs/x.md#part) and \`src/core/a.cpp\`, \`--seed 3\`.

    $ deeptail spb alpha --ratio 3   # why
    alpha 2
      indented

    $ deeptail selftest

- a point
    of a list: deeptail is not a command here

\`\`\`sh
cat > a.csv <<'END'
x
END
deeptail loss a.csv \\
  --json
make build
\`\`\`

    1. a step

       $ deeptail dist list
       hex

    2. another
`;
const found = commandsOf(page);
assert.deepEqual(found.map((c) => written(c.shell)), ["deeptail truth --seed 1", "deeptail bench export RUN", "deeptail spb alpha --ratio 3",
  "deeptail selftest", "cat > a.csv <<'END' x END", "deeptail loss a.csv --json", "deeptail dist list"]);
assert.deepEqual(found.map((c) => c.stated), [null, null, ["alpha 2", "  indented"], null, null, null, ["hex"]]);
assert.equal(found[2].line, 6);
assert.equal(found[4].shell, "cat > a.csv <<'END'\nx\nEND");
assert.deepEqual(named(page), { flags: ["--seed"], targets: ["build"], files: ["src/core/a.cpp"], links: ["docs/x.md"] });

assert.equal(difference(["p = 1e-7  2.5 s"], "p = 1e-7  31.0 s\n"), null);
assert.equal(difference(["a", "...", "d"], "a\nb\nc\nd\n"), null);
assert.equal(difference(["a", "..."], "a\nb\n"), null);
assert.match(difference(["p = 1e-7"], "p = 2e-7\n"), /line 1/);
assert.match(difference(["a"], "a\nb\n"), /goes on/);
assert.match(difference(["a", "b"], "a\n"), /nothing more/);
assert.match(difference(["a", "...", "e"], "a\nb\n"), /not printed/);

const { "p.md": rows } = readTable("# remark\n[p.md]\nprepare: touch x\nquick: a --b => c\na --b => skip: long\n");
assert.deepEqual(rows.prepare, ["touch x"]);
assert.equal(runInstead(rows, "a --b", true), "c");
assert.equal(runInstead(rows, "a --b", false), null);
assert.equal(runInstead(rows, "other", true), undefined);
assert.throws(() => readTable("a => b\n"), /expected \[PAGE\]/);
assert.throws(() => readTable("[p.md]\nneither\n"), /expected COMMAND/);
console.log("1 passed, 0 failed");
