// Counters of a plan, and the same table read by an Iceberg v2 or v3 reader.

import { h, put } from "../dom.js";
import { count, num, percent, short, size } from "../words.js";

const stat = (label, value, of, share) =>
  h(
    "div",
    { class: "stat" },
    h("div", { class: "l" }, label),
    h("div", { class: "v" }, value, of && h("small", {}, of)),
    share !== undefined &&
      h("div", { class: "meter" }, h("i", { css: { width: `${Math.max(share ? 1.2 : 0, share)}%` } })),
  );

const bar = (name, files, most, kind) =>
  h(
    "div",
    { class: `row ${kind}` },
    h("span", {}, name),
    h("i", { css: { width: `${percent(files, most)}%` } }),
    h("span", {}, num(files)),
  );

export function counters(host, { tree, plan, filtered }) {
  if (!plan) return put(host);
  const n = plan.of,
    metadata = tree.root.bytes + tree.leaves.bytes.reduce((a, x) => a + x, 0),
    ice = plan.iceberg;
  const mine = plan.opened + 1,
    theirs = ice.manifests + 1,
    most = Math.max(ice.all + 1, n + 1, 1);
  const why =
    ice.manifests <= plan.opened
      ? ice.pruned_by && filtered
        ? ": by partition alone it prunes just as well"
        : ""
      : filtered && plan.opened < n
        ? ", because its list has ranges of the partition only"
        : ", because each recent commit has a manifest of its own";
  return put(
    host,
    h(
      "div",
      { class: "stats" },
      h("h2", {}, filtered ? "Planning this filter" : "Planning a full scan"),
      n ? stat("Leaves opened", num(plan.opened), `of ${num(n)}`, percent(plan.opened, n)) : null,
      stat("Files left", num(plan.files), `of ${num(plan.all.files)}`, percent(plan.files, plan.all.files)),
      h(
        "div",
        { class: "two" },
        stat(plan.kept_rows_exact ? "Rows" : "Rows at most", short(plan.rows)),
        stat("Data to read", size(plan.data_bytes)),
        stat("Metadata read", size(plan.bytes), `of ${size(metadata)}`),
        stat("Time", plan.ms < 10 ? plan.ms.toFixed(1) : num(Math.round(plan.ms)), "ms"),
      ),
      plan.engine_only
        ? h("p", { class: "note" }, "Only rows can tell: ", h("span", { class: "col" }, plan.engine_only))
        : null,
      h(
        "div",
        { class: "vs" },
        h("div", { class: "l" }, "Metadata files opened"),
        bar("Frazil", mine, most, "me"),
        bar("Iceberg v2/v3", theirs, most, ""),
        h(
          "p",
          { title: ice.assumption },
          `An Iceberg v2 or v3 reader would open ${count(ice.manifests, "manifest")} and a list${why}.`,
        ),
        h("details", {}, h("summary", {}, "How this is counted"), h("p", {}, ice.assumption)),
      ),
    ),
  );
}
