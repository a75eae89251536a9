// What the drawing needs from a tree and a plan: verdicts per leaf, and words for them.

import { count, num } from "../words.js";

export const leafName = (i) => `Leaf ${i + 1}`;

/** Verdict on a leaf: null without a filter, {off: reason} when it was skipped, {left} when opened. */
export function verdict(state, i) {
  const { plan, filtered } = state;
  if (!filtered || !plan) return null;
  const why = plan.leaf_why[i] ?? -1;
  return why >= 0 ? { off: plan.reasons[why] } : { left: plan.leaf_left[i] ?? 0 };
}

export const reasonName = (reason) => reason.columns.join(", ") || "the filter";

export const live = (tree, i) => tree.leaves.entries[i] - tree.leaves.dead[i];

export function rangeText(column, i) {
  if (!column) return "";
  const lo = column.leaves.lo_text[i],
    hi = column.leaves.hi_text[i];
  if (lo === null && hi === null) return "no bounds";
  return lo === hi ? lo : `${lo ?? "?"} … ${hi ?? "?"}`;
}

/** Its entries: those that count, and those that a later commit retired. */
export const entriesText = (tree, i) =>
  count(live(tree, i), "entry", "entries") +
  (tree.leaves.dead[i] ? `, and ${num(tree.leaves.dead[i])} dead` : "");

export function leafLabel(state, i) {
  const { tree, column } = state,
    told = verdict(state, i),
    l = tree.leaves;
  const kind = l.kind[i] === "deletes" ? "Delete leaf" : "Leaf";
  return (
    `${kind} ${i + 1}, ${entriesText(tree, i)}` +
    (column ? `, ${column.name} ${rangeText(column, i)}` : "") +
    (told
      ? told.off
        ? `, skipped by ${reasonName(told.off)}`
        : `, opened, ${count(told.left, "file")} left`
      : "")
  );
}

/** What made the leaves that a commit wrote: the word on them. */
export function freshWord({ commit }) {
  return commit?.split ? "split" : commit?.merged ? "merge" : commit?.flushed ? "flush" : "new";
}

/** Where the filter's values lie on a column's scale. */
export const bandsOf = (state) =>
  (state.filtered && state.column && state.plan?.bands?.[state.column.id]) || [];

/** The share of dead positions in 64 bins, from base64. */
export const bins = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
