// Small plots as SVG. Each has a label for those who cannot see it.

import { b, h, s } from "./dom.js";
import { count, num, percent, size } from "./words.js";

/** Commits per day, oldest first. */
export function sparkline(values) {
  const top = Math.max(...values, 1),
    w = 84,
    hh = 20,
    step = w / values.length;
  return s(
    "svg",
    {
      class: "spark",
      width: w,
      height: hh,
      role: "img",
      "aria-label": `Commits per day, oldest first: ${values.join(", ")}`,
    },
    values.map((v, i) =>
      s("rect", {
        x: i * step,
        y: hh - Math.max(1.5, (v / top) * hh),
        width: step - 1.5,
        height: Math.max(1.5, (v / top) * hh),
        rx: 1,
        class: v ? "on" : "off",
      }),
    ),
  );
}

/** One bar cut into parts: [{label, value, kind}] with a legend below. */
export function stack(parts) {
  const sum = parts.reduce((a, p) => a + p.value, 0);
  return h(
    "div",
    {},
    h(
      "div",
      {
        class: "stack",
        role: "img",
        "aria-label": parts.map((p) => `${p.label} ${size(p.value)}`).join(", "),
      },
      parts.map((p) =>
        h("i", { class: p.kind, css: { width: `${Math.max(p.value ? 0.6 : 0, percent(p.value, sum))}%` } }),
      ),
    ),
    h(
      "ul",
      { class: "stack-key" },
      parts.map((p) =>
        h(
          "li",
          {},
          h("i", { class: p.kind }),
          h("span", {}, p.label),
          b(size(p.value)),
          h("span", { class: "dim" }, p.note ?? ""),
        ),
      ),
    ),
  );
}

/** Files by size: one column per bin. */
export function histogram(sizes) {
  const bins = sizes.files
    .map((n, i) => ({ n, lo: sizes.edges[i], hi: sizes.edges[i + 1] }))
    .filter((bin, i, all) => bin.n || (all.slice(0, i).some((x) => x.n) && all.slice(i).some((x) => x.n)));
  if (!bins.length) return h("p", { class: "empty" }, "No data files.");
  const top = Math.max(...bins.map((bin) => bin.n));
  const label = (bin) =>
    bin.hi === undefined || bin.hi === null
      ? `${size(bin.lo)} and more`
      : `${size(bin.lo)} to ${size(bin.hi)}`;
  return h(
    "ul",
    { class: "hist-plot", "aria-label": "Files by size" },
    bins.map((bin) =>
      h(
        "li",
        {},
        h("span", { class: "sr" }, `${label(bin)}: ${count(bin.n, "file")}`),
        h("span", { class: "hn", "aria-hidden": "true" }, bin.n ? num(bin.n) : ""),
        h("i", {
          title: `${label(bin)}: ${count(bin.n, "file")}`,
          css: { height: `${Math.max(bin.n ? 2 : 0, percent(bin.n, top) * 1.1)}px` },
        }),
        h("span", { class: "hl", "aria-hidden": "true" }, size(bin.lo)),
      ),
    ),
  );
}

/** Horizontal bars: [{label, value, text}]. */
export const bars = (rows, label) => {
  const top = Math.max(...rows.map((r) => r.value), 1);
  return h(
    "ul",
    { class: "bars", "aria-label": label },
    rows.map((r) =>
      h(
        "li",
        { class: r.kind },
        h("span", { class: "bl cut", title: r.label }, r.label),
        h("span", { class: "bb" }, h("i", { css: { width: `${percent(r.value, top)}%` } })),
        h("span", { class: "bn" }, r.text),
      ),
    ),
  );
};

const SPREAD = { width: 132, height: 26 };

/** How the values of a column spread: columns from low to high, or one per frequent value. */
export function histogramOf(told, name) {
  const columns = told.bins
    ? told.bins.map((n) => ({ n, text: null }))
    : (told.values ?? []).map(([text, n]) => ({ n, text }));
  if (told.others) columns.push({ n: told.others, text: "other values", rest: true });
  if (!columns.length) return h("span", { class: "dim" }, "–");
  const { width, height } = SPREAD,
    top = Math.max(...columns.map((column) => column.n), 1),
    step = Math.min(width / columns.length, 22);
  const label = told.bins
    ? `Rows by ${name}, from ${told.low} to ${told.high}: ${told.bins.join(", ")}`
    : `Rows by ${name}: ${columns.map((column) => `${column.text} ${num(column.n)}`).join(", ")}`;
  return s(
    "svg",
    { class: "spread", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    s("title", {}, label.length > 300 ? `Rows by ${name}, from ${told.low} to ${told.high}` : label),
    columns.map(({ n, rest }, i) => {
      const tall = n ? Math.max(2, (n / top) * height) : 1;
      return s("rect", {
        x: (i * step).toFixed(2),
        y: (height - tall).toFixed(2),
        width: Math.max(1, step - 1.5).toFixed(2),
        height: tall.toFixed(2),
        rx: 1,
        class: rest || !n ? "off" : "on",
      });
    }),
  );
}

/** A count as a share of a whole, with a small meter. */
export const share = (part, whole) =>
  !part
    ? h("span", { class: "dim" }, "none")
    : h(
        "span",
        { class: "share", title: count(part, "null") },
        h("i", { css: { "--part": `${Math.min(100, percent(part, whole))}%` } }),
        whole ? `${percent(part, whole) < 0.1 ? "<0.1" : percent(part, whole).toFixed(1)} %` : num(part),
      );

/** A line over time, oldest first; what is not known is left out. */
export function line(values, label) {
  const known = values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  if (known.length < 2) return null;
  const w = 120,
    hh = 26,
    top = Math.max(...known.map(([, value]) => value), 1),
    last = values.length - 1;
  const points = known.map(
    ([i, v]) => `${((i / last) * w).toFixed(1)},${(hh - 1 - (v / top) * (hh - 3)).toFixed(1)}`,
  );
  return s(
    "svg",
    { class: "trend", width: w, height: hh, viewBox: `0 0 ${w} ${hh}`, role: "img", "aria-label": label },
    s("polyline", { points: points.join(" "), fill: "none" }),
  );
}
