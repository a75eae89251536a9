// One leaf and its entries, or one file: the panel at the side of the tree.

import { aborted } from "../api.js";
import { b, code, h, icon, put, sheet, trouble, waiting } from "../dom.js";
import { ramp, token } from "../theme.js";
import { count, num, percent, short, size, when } from "../words.js";
import { bins, leafName, verdict } from "./model.js";

const PAGE = 25;
const tail = (path) => String(path).split("/").at(-1);

export class Panel {
  constructor(host, { page, onclose, onfile }) {
    this.host = host;
    this.page = page;
    this.onclose = onclose;
    this.onfile = onfile;
    this.offset = 0;
    this.only = "all";
  }

  async leaf(state) {
    const id = state.leaf,
      i = state.tree.leaves.id.indexOf(id);
    if (this.id !== id || this.where !== state.where) {
      this.offset = 0;
      if (this.id !== id) this.only = "all";
    }
    const fresh = this.id !== id || this.file;
    this.id = id;
    this.where = state.where;
    this.file = null;
    this.abort?.abort();
    this.abort = new AbortController();
    if (fresh)
      put(
        this.host,
        this.top(id === "root" ? "Files in the root" : leafName(i)),
        waiting("Reading the leaf"),
      );
    try {
      const leaf = await this.page.api.get(
        "leaf",
        {
          id,
          snapshot: state.tree.snapshot,
          where: state.error ? "" : state.where,
          column: state.column?.id,
          offset: this.offset,
          limit: PAGE,
          only: this.only === "all" ? null : this.only,
        },
        this.abort.signal,
      );
      this.paintLeaf(state, leaf, i);
    } catch (error) {
      if (!aborted(error)) put(this.host, this.top("Leaf"), trouble(error));
    }
  }

  top(title, ...tags) {
    return h(
      "div",
      { class: "top" },
      h("h2", {}, title),
      tags,
      h("span", { class: "grow" }),
      h(
        "button",
        {
          class: "btn icon",
          type: "button",
          id: "back",
          "aria-label": "Close",
          onclick: () => this.onclose(),
        },
        icon("close"),
      ),
    );
  }

  paintLeaf(state, leaf, i) {
    const told = i >= 0 ? verdict(state, i) : null,
      alive = leaf.entries - leaf.dead,
      focus = this.host.contains(document.activeElement) ? document.activeElement.id : null;
    const said = !told
      ? null
      : told.off
        ? h(
            "p",
            { class: "verdict off" },
            b("Skipped unread."),
            " Its bounds rule out ",
            code(told.off.text),
            ".",
          )
        : h(
            "p",
            { class: "verdict" },
            b(`Opened. ${num(told.left)} of ${count(alive, "live file")} left`),
            told.left ? "." : ": the leaf’s range covers the filter, none of its files does.",
          );
    const numbers = [
      ["entries", num(leaf.entries)],
      ["live", num(alive)],
      ["dead", num(leaf.dead)],
      ["size", size(leaf.bytes)],
    ];
    put(
      this.host,
      this.top(
        i >= 0 ? leafName(i) : "Files in the root",
        i >= 0 && state.tree.leaves.fresh.includes(i)
          ? h("span", { class: "tag add" }, "written by this commit")
          : null,
      ),
      h("p", { class: "fn" }, leaf.name),
      said,
      h(
        "div",
        { class: "dl" },
        numbers.map(([label, value]) => h("div", {}, b(value), label)),
      ),
      this.bounds(state, leaf, told),
      h("h2", {}, "Entries, by position"),
      this.cells(state, leaf, told),
      this.entries(state, leaf),
    );
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  }

  bounds(state, leaf, told) {
    const by = new Set(told?.off?.columns ?? []),
      bands = (c) => (state.filtered && state.plan?.bands?.[c.id]) || [];
    return h(
      "table",
      { class: "bt" },
      h("caption", { class: "sr" }, "Bounds by column"),
      h(
        "tbody",
        {},
        leaf.columns.map((c) =>
          h(
            "tr",
            { class: by.has(c.name) ? "by" : null },
            h("th", { scope: "row" }, c.name),
            c.leaf === null
              ? h("td", { colspan: 3 }, h("span", { class: "dim" }, "no bounds"))
              : [
                  h("td", { class: "n" }, h("span", { class: "cut", title: c.lo_text }, c.lo_text ?? "?")),
                  h(
                    "td",
                    { class: "w" },
                    h(
                      "div",
                      { class: "tr" },
                      h("i", {
                        css: { left: `${c.leaf[0] * 100}%`, width: `${(c.leaf[1] - c.leaf[0]) * 100}%` },
                      }),
                      bands(c).map(([x, y]) =>
                        h("u", { css: { left: `calc(${x * 100}% - 1px)`, width: `${(y - x) * 100}%` } }),
                      ),
                    ),
                  ),
                  h("td", {}, h("span", { class: "cut", title: c.hi_text }, c.hi_text ?? "?")),
                ],
          ),
        ),
      ),
    );
  }

  cells(state, leaf, told) {
    const c = leaf.cells,
      n = c.live.length,
      on = state.filtered;
    const canvas = h("canvas", {
      class: "grid",
      tabindex: 0,
      role: "img",
      id: "cells",
      "aria-label":
        `${count(leaf.entries, "entry", "entries")} in order, ${num(leaf.dead)} dead. ` +
        "Arrow keys move; the table below lists them.",
    });
    const read = h("p", { class: "read", "aria-live": "polite" });
    const key = h(
      "div",
      { class: "key" },
      on
        ? [
            h("span", {}, h("i", { class: "k-hit" }), "can match"),
            h("span", {}, h("i", { class: "k-off" }), "cannot"),
          ]
        : h(
            "span",
            {},
            h("i", { css: { background: ramp(0.6) } }),
            state.column ? `live, by ${state.column.name}` : "live",
          ),
      h("span", {}, h("i", { class: "k-dead" }), "dead"),
      c.stride > 1 ? h("span", {}, `one cell = ${num(c.stride)} entries`) : null,
    );
    requestAnimationFrame(() => {
      const W = canvas.clientWidth || 330,
        step = n > 700 ? 6 : 11,
        per = Math.max(1, Math.floor(W / step)),
        H = Math.ceil(n / per) * step,
        dpr = devicePixelRatio || 1,
        g = canvas.getContext("2d");
      Object.assign(canvas, { width: W * dpr, height: H * dpr });
      canvas.style.height = `${H}px`;
      let cur = Math.max(
        0,
        on && !told?.off ? c.match.findIndex((m) => m > 0) : c.dead.findIndex((d) => d > 0),
      );
      const paint = () => {
        const hit = token("--accent"),
          off = token("--line2"),
          dead = token("--dead");
        g.setTransform(dpr, 0, 0, dpr, 0, 0);
        g.clearRect(0, 0, W, H);
        for (let k = 0; k < n; k++) {
          const x = (k % per) * step,
            y = Math.floor(k / per) * step;
          g.fillStyle =
            !c.live[k] && c.dead[k]
              ? dead
              : on
                ? c.match[k]
                  ? hit
                  : off
                : ramp(((c.lo[k] ?? 0.5) + (c.hi[k] ?? 0.5)) / 2);
          g.fillRect(x, y, step - 1, step - 1);
          if (c.dead[k] && c.live[k]) {
            g.fillStyle = dead;
            g.fillRect(x, y + step - 3, step - 1, 2);
          }
        }
        g.strokeStyle = token("--ink");
        g.lineWidth = 2;
        g.strokeRect((cur % per) * step - 1, Math.floor(cur / per) * step - 1, step + 1, step + 1);
        const from = cur * c.stride,
          to = Math.min(leaf.entries, from + c.stride) - 1;
        put(
          read,
          b(to > from ? `Positions ${num(from)} to ${num(to)}` : `Position ${num(from)}`),
          ` · ${num(c.live[cur] ?? 0)} live · ${num(c.dead[cur] ?? 0)} dead`,
          on ? ` · ${num(c.match[cur] ?? 0)} can match` : "",
        );
      };
      const to = (k) => {
        cur = Math.max(0, Math.min(n - 1, k));
        paint();
      };
      canvas.addEventListener("mousemove", (event) => {
        const r = canvas.getBoundingClientRect();
        to(
          Math.floor((event.clientY - r.top) / step) * per +
            Math.min(per - 1, Math.floor((event.clientX - r.left) / step)),
        );
      });
      canvas.addEventListener("click", () => {
        this.only = "all";
        this.offset = Math.floor((cur * c.stride) / PAGE) * PAGE;
        this.leaf(state);
      });
      canvas.addEventListener("keydown", (event) => {
        const d = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: per, ArrowUp: -per }[event.key];
        if (d) {
          event.preventDefault();
          to(cur + d);
        }
      });
      if (n) paint();
    });
    return [canvas, key, read];
  }

  entries(state, leaf) {
    const p = leaf.page,
      bounds = state.column ? p.bounds?.[state.column.id] : null;
    const turn = (only, offset) => {
      this.only = only;
      this.offset = offset;
      this.leaf(state);
    };
    const kinds = [
      ["all", "All"],
      ...(state.filtered ? [["match", "Matching"]] : []),
      ...(leaf.dead ? [["dead", "Dead"]] : []),
    ];
    return [
      h(
        "div",
        { class: "ehead" },
        kinds.length > 1
          ? h(
              "div",
              { class: "seg", role: "group", "aria-label": "Which entries" },
              kinds.map(([id, label]) =>
                h(
                  "button",
                  {
                    type: "button",
                    id: `only-${id}`,
                    "aria-pressed": String(this.only === id),
                    onclick: () => turn(id, 0),
                  },
                  label,
                ),
              ),
            )
          : null,
        h("span", { class: "grow" }),
        h(
          "span",
          { class: "dim" },
          leaf.total
            ? `${num(p.offset + 1)}–${num(p.offset + p.position.length)} of ${num(leaf.total)}`
            : "none",
        ),
        h(
          "button",
          {
            class: "btn icon",
            type: "button",
            id: "e-prev",
            "aria-label": "Previous entries",
            disabled: p.offset === 0,
            onclick: () => turn(this.only, Math.max(0, p.offset - PAGE)),
          },
          icon("prev"),
        ),
        h(
          "button",
          {
            class: "btn icon",
            type: "button",
            id: "e-next",
            "aria-label": "Next entries",
            disabled: p.offset + p.position.length >= leaf.total,
            onclick: () => turn(this.only, p.offset + PAGE),
          },
          icon("next"),
        ),
      ),
      sheet(
        [
          h("th", { scope: "col", class: "n" }, "#"),
          h("th", { scope: "col" }, "File"),
          h("th", { scope: "col", class: "n" }, "Rows"),
          h("th", { scope: "col" }, state.column?.name ?? "Bounds"),
        ],
        p.position.map((pos, k) =>
          h(
            "tr",
            { class: p.state[k] === "dead" ? "gone" : p.match[k] === false ? "miss" : null },
            h("td", { class: "n dim" }, num(pos)),
            h(
              "td",
              {},
              h(
                "button",
                {
                  class: "link cut",
                  type: "button",
                  title: p.file[k],
                  onclick: () => this.onfile(p.id[k]),
                },
                tail(p.file[k]),
              ),
              p.partition?.[k]
                ? h("span", { class: "sub cut", title: p.partition[k] }, p.partition[k])
                : null,
            ),
            h(
              "td",
              { class: "n" },
              short(p.rows[k]),
              p.state[k] === "dead"
                ? h("span", { class: "sub rust" }, "dead")
                : p.vector_rows[k]
                  ? h("span", { class: "sub rust" }, `−${num(p.vector_rows[k])}`)
                  : p.kind[k] !== "data"
                    ? h("span", { class: "sub" }, "deletes")
                    : null,
            ),
            h(
              "td",
              {},
              bounds && bounds.lo[k] !== null
                ? h(
                    "span",
                    { class: "sub2" },
                    bounds.lo[k] === bounds.hi[k] ? bounds.lo[k] : `${bounds.lo[k]} … ${bounds.hi[k]}`,
                  )
                : h("span", { class: "dim" }, "–"),
            ),
          ),
        ),
        { label: "Entries", caption: "Entries of the leaf", kind: "entries" },
      ),
    ];
  }

  async showFile(state, id) {
    this.abort?.abort();
    this.abort = new AbortController();
    this.file = id;
    const back = state.leaf
      ? h(
          "button",
          { class: "btn quiet", type: "button", id: "to-leaf", onclick: () => this.onfile(null) },
          icon("prev"),
          "Leaf",
        )
      : null;
    put(this.host, this.top("File"), waiting("Reading the file’s footer"));
    try {
      const f = await this.page.api.get(
        "file",
        { id, snapshot: state.tree.snapshot, leaf: state.leaf },
        this.abort.signal,
      );
      put(
        this.host,
        this.top("File", back),
        h("p", { class: "fn" }, f.path),
        h(
          "div",
          { class: "dl" },
          [
            ["rows", num(f.rows)],
            ["size", size(f.bytes)],
            ["sequence", num(f.sequence ?? "–")],
            ["codec", f.codec ?? f.format],
          ].map(([l, v]) => h("div", {}, b(v), l)),
        ),
        f.partition
          ? h("p", { class: "note" }, "Partition ", h("span", { class: "col" }, f.partition))
          : null,
        this.rowGroups(f),
        this.slices(f),
        this.vector(f),
        this.fileColumns(f),
        this.fileHistory(f),
      );
      document.getElementById(back ? "to-leaf" : "back")?.focus({ preventScroll: true });
    } catch (error) {
      if (!aborted(error)) put(this.host, this.top("File", back), trouble(error));
    }
  }

  rowGroups(f) {
    if (!f.row_groups)
      return f.footer_error ? [h("h2", {}, "Row groups"), h("p", { class: "note" }, f.footer_error)] : null;
    const g = f.row_groups,
      most = Math.max(...g.compressed, 1),
      shown = g.rows.slice(0, 12);
    return [
      h("h2", {}, count(g.rows.length, "row group")),
      h(
        "table",
        { class: "bt" },
        h("caption", { class: "sr" }, "Row groups"),
        h(
          "tbody",
          {},
          shown.map((rows, i) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, `${i + 1}`),
              h("td", { class: "n" }, count(rows, "row")),
              h(
                "td",
                { class: "w" },
                h(
                  "div",
                  { class: "tr" },
                  h("i", { css: { left: "0", width: `${percent(g.compressed[i], most)}%` } }),
                ),
              ),
              h("td", { class: "n" }, size(g.compressed[i])),
            ),
          ),
        ),
      ),
      g.rows.length > shown.length
        ? h("p", { class: "note" }, `and ${num(g.rows.length - shown.length)} more`)
        : null,
    ];
  }

  slices(f) {
    if (!f.slices.length) return null;
    const most = Math.max(...f.slices.map((s) => s.bytes), 1);
    return [
      h("h2", {}, count(f.slices.length - 1, "column file")),
      h(
        "table",
        { class: "bt slices" },
        h("caption", { class: "sr" }, "Files that the columns are read from"),
        h(
          "tbody",
          {},
          f.slices.map((slice, i) =>
            h(
              "tr",
              { title: slice.path },
              h("th", { scope: "row" }, i ? slice.columns.join(", ") : count(slice.columns.length, "column")),
              h("td", {}, i ? tail(slice.path) : "data file"),
              h(
                "td",
                { class: "w" },
                h(
                  "div",
                  { class: "tr" },
                  h("i", { css: { left: "0", width: `${percent(slice.bytes, most)}%` } }),
                ),
              ),
              h("td", { class: "n" }, size(slice.bytes)),
            ),
          ),
        ),
      ),
      h("p", { class: "note" }, "Each column is read from one file; rows meet by position."),
    ];
  }

  vector(f) {
    if (!f.vector)
      return [
        h("h2", {}, "Deletion vector"),
        h("p", { class: "note" }, "None: every row of this file is live."),
      ];
    const share = f.vector.bins ? bins(f.vector.bins) : [],
      canvas = h(
        "div",
        { class: "vec", role: "img", "aria-label": `${num(f.vector.rows)} of ${num(f.rows)} rows deleted` },
        [...share].map((v) => h("i", { css: { opacity: v ? String(0.35 + (0.65 * v) / 255) : "0" } })),
      );
    return [
      h("h2", {}, "Deletion vector"),
      canvas,
      h(
        "p",
        { class: "note" },
        `${count(f.vector.rows, "row")} of ${num(f.rows)} deleted · ${size(f.vector.bytes)} in ${tail(f.vector.path)}`,
        f.vector.error ? `. ${f.vector.error}` : "",
      ),
    ];
  }

  fileColumns(f) {
    return [
      h("h2", {}, "Columns"),
      sheet(
        ["Column", "Lowest", "Highest", "Nulls"].map((t, i) =>
          h("th", { scope: "col", class: i === 3 ? "n" : null }, t),
        ),
        f.columns.map((c) =>
          h(
            "tr",
            {},
            h("td", { class: "m" }, c.name),
            h("td", {}, h("span", { class: "cut12", title: c.lo }, c.lo ?? "–")),
            h("td", {}, h("span", { class: "cut12", title: c.hi }, c.hi ?? "–")),
            h("td", { class: "n" }, c.nulls === null ? "–" : num(c.nulls)),
          ),
        ),
        { label: "Columns of the file", caption: "Bounds of the file", kind: "entries" },
      ),
    ];
  }

  fileHistory(f) {
    return [
      h("h2", {}, "History"),
      h(
        "ol",
        { class: "past" },
        f.history.map((e) =>
          h(
            "li",
            {},
            h("a", { href: this.page.link("history", { commit: e.snapshot }) }, when(e.time)),
            " ",
            e.text,
          ),
        ),
      ),
      f.history_complete === false ? h("p", { class: "note" }, "Older commits were not looked at.") : null,
    ];
  }
}
