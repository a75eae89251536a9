// What the filter did, in a sentence. It is also what a screen reader hears.

import { b, code, put } from "../dom.js";
import { count, num } from "../words.js";

const all = (n) => (n === 1 ? "The only leaf" : n === 2 ? "Both leaves" : `All ${num(n)} leaves`);

export function caption(host, { tree, plan, error, filtered, names: known }) {
  const n = tree.leaves.id.length,
    files = tree.totals.files,
    inline = tree.inline.n;
  if (error)
    return put(host, b("This filter cannot be read yet."), " The tree still shows the last one that could.");
  if (!tree.snapshot)
    return put(host, "This table has no snapshots yet. Append some rows and they appear here.");
  if (!n && !inline) return put(host, "This snapshot has no files.");
  if (!filtered || !plan)
    return put(
      host,
      b(`One root lists all ${count(files, "file")}`),
      n
        ? `: ${count(n, "leaf holds", "leaves hold")} ${num(files - inline)}, and ` +
            `${count(inline, "recent file is", "recent files are")} in the root itself. ` +
            "Without a filter every leaf is opened. Pick an example to see them skipped."
        : ": the table is small enough to need no leaves, so planning reads one file.",
    );
  const skipped = plan.of - plan.opened,
    by = tally(plan);
  const left =
    ` ${plan.files ? num(plan.files) : "None"} of ${count(files, "file")} ` +
    `${plan.files === 1 ? "is" : "are"} left to read.`;
  if (!plan.opened && !plan.files)
    return put(
      host,
      b("No leaf was opened."),
      " The root alone shows that nothing can match",
      by.length ? [": its bounds rule out ", code(by[0][0].text)] : "",
      ". Planning ended after one file.",
    );
  if (!n) return put(host, "The root lists every file, so no leaf is needed.", left);
  if (!skipped) {
    if (!plan.prunable)
      return put(
        host,
        b(`${all(n)} had to be opened`),
        ": no column of this filter has bounds or a partition, so nothing can be skipped by it.",
        left,
      );
    return put(
      host,
      b(`${all(n)} had to be opened`),
      ": every range contains values that the filter asks for. The leaves are not clustered by ",
      columnsOf(plan, known),
      ".",
      left,
    );
  }
  const head = ["Your filter touched ", b(`${num(plan.opened)} of ${count(plan.of, "leaf", "leaves")}`)];
  const was = skipped === 1 ? "was" : "were";
  if (by.length === 1)
    return put(
      host,
      head,
      `: ${num(skipped)} ${was} skipped unread, because ${skipped === 1 ? "its" : "their"} ` +
        `${by[0][0].by === "bounds" ? "bounds" : "partitions"} rule out `,
      code(by[0][0].text),
      ".",
      left,
    );
  return put(
    host,
    head,
    `. ${num(skipped)} ${was} skipped unread`,
    by.length
      ? [
          ", ",
          by.map(([reason, times], i) => [
            i ? (i === by.length - 1 ? " and " : ", ") : "",
            `${num(times)} by `,
            names(reason),
          ]),
        ]
      : "",
    ".",
    left,
  );
}

const names = (reason) => reason.columns.map((name, i) => [i ? ", " : "", code(name)]);

function columnsOf(plan, all) {
  const known = plan.columns.map((id) => all.get(id)).filter(Boolean);
  return known.length ? known.map((name, i) => [i ? ", " : "", code(name)]) : "them";
}

/** Reasons and how many leaves each one skipped, the most frequent first; one per set of columns. */
function tally(plan) {
  const times = new Map();
  for (const why of plan.leaf_why)
    if (why >= 0) {
      const reason = plan.reasons[why],
        key = reason.columns.join();
      const found = times.get(key) ?? [reason, 0];
      found[1]++;
      times.set(key, found);
    }
  return [...times.values()].sort((x, y) => y[1] - x[1]);
}
