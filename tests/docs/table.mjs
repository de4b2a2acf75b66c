// The table `shortened`: what is run instead of a command as a page has it.
//   [PAGE]                             the rows below are about this page
//   prepare: COMMAND                   run before the page's commands
//   COMMAND => COMMAND                 run this instead
//   COMMAND => skip: REASON            not run at all
//   quick: COMMAND => ...              only in the quick part
// COMMAND on the left is as written in the page: one line, single spaces, without the remark behind it.

export function readTable(text) {
  const pages = {};
  let rows;
  text.split("\n").forEach((line, i) => {
    if (line.trim() === "" || line.startsWith("#")) return;
    const page = line.match(/^\[(.*)\]$/), prepare = line.match(/^prepare: (.*)$/), row = line.match(/^(quick: )?(.*?) => (.*)$/);
    if (page) rows = pages[page[1]] ??= { prepare: [], instead: [] };
    else if (!rows) throw new Error(`shortened:${i + 1}: expected [PAGE] first`);
    else if (prepare) rows.prepare.push(prepare[1]);
    else if (row) rows.instead.push({ line: i + 1, quick: !!row[1], command: row[2].trim(), run: row[3].trim(), used: false });
    else throw new Error(`shortened:${i + 1}: expected COMMAND => COMMAND`);
  });
  return pages;
}

// The shell line to run for a command as written, null to skip it; a row that served is marked.
export function runInstead(rows, command, quick) {
  const served = (rows?.instead ?? []).filter((row) => row.command === command);
  for (const row of served) row.used = true;
  const row = served.find((r) => r.quick && quick) ?? served.find((r) => !r.quick);
  if (!row) return undefined;
  return row.run.startsWith("skip:") ? null : row.run;
}
