// A tree from the one on screen and a step: leaves that both have are not sent again.

const FIXED = ["id", "name", "entries", "bytes", "rows", "kind", "format_version", "written_by"];

/** The values of all leaves: those that stay from `old`, the new ones from `sent`, in order. */
function joined(runs, old, sent) {
  const out = [];
  let next = 0;
  for (const [from, n] of runs) for (let k = 0; k < n; k++) out.push(from < 0 ? sent[next++] : old[from + k]);
  return out;
}

function column(runs, old, c) {
  const { moved, ...l } = c.leaves;
  if (moved === undefined) return c;
  const o = old.leaves,
    leaves = {};
  for (const name of ["lo_text", "hi_text", "nulls"]) leaves[name] = joined(runs, o[name], l[name]);
  for (const name of ["lo", "hi"])
    leaves[name] = moved
      ? joined(
          runs,
          o[name].map((t) => (t === null ? null : t * moved[0] + moved[1])),
          l[name],
        )
      : l[name];
  return { ...c, leaves };
}

export function grown(base, step) {
  const { runs, dead, dead_bins, fresh, died, ...sent } = step.leaves,
    old = base.leaves,
    leaves = { fresh, died, dead_bins: {} };
  for (const name of FIXED) leaves[name] = joined(runs, old[name], sent[name]);
  const was = joined(
    runs,
    old.id.map((_, i) => i),
    [],
  );
  leaves.dead = was.map((i, at) => dead[at] ?? old.dead[i]);
  was.forEach((i, at) => {
    const bins = at in dead ? dead_bins[at] : old.dead_bins[i];
    if (bins !== undefined) leaves.dead_bins[at] = bins;
  });
  const columns = step.columns.map((c) =>
    column(
      runs,
      base.columns.find((x) => x.id === c.id),
      c,
    ),
  );
  return { ...step, leaves, columns };
}
