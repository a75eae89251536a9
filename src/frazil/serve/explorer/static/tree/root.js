// The root: one cell per leaf entry and one per recent file. Pruning happens here first.

import { b, h, put } from "../dom.js";
import { calm, gradient, ramp, token } from "../theme.js";
import { count, num, size } from "../words.js";
import { verdict } from "./model.js";

const AS_ELEMENTS = 160;

export class Root {
  constructor() {
    this.head = h("div", { class: "rhead" });
    this.leafLabel = h("span", { class: "lab" });
    this.leafCells = h("div", { class: "ptrs", "aria-hidden": "true" });
    this.fileLabel = h("span", { class: "lab" });
    this.fileCells = h("div", { class: "ticks", "aria-hidden": "true" });
    this.news = h("span", { class: "news" });
    this.deeds = h("span", { class: "news deeds" });
    this.element = h(
      "div",
      { class: "root" },
      this.head,
      h(
        "div",
        { class: "inl" },
        this.leafLabel,
        h("div", { class: "cell" }, this.leafCells),
        this.fileLabel,
        h("div", { class: "cell" }, this.fileCells, this.news),
      ),
    );
  }

  draw(state, kind) {
    const { tree, plan, filtered, marks } = state,
      l = tree.leaves,
      inline = tree.inline;
    this.element.classList.toggle("new", marks);
    put(
      this.head,
      b(tree.root.version === 4 ? "Root" : "Manifest list"),
      h("span", {}, `${size(tree.root.bytes)} · ${count(tree.root.entries, "entry", "entries")}`),
      h("span", { class: "nm" }, tree.root.name),
      h("span", { class: "grow" }),
      this.deeds,
    );
    put(
      this.leafLabel,
      filtered
        ? [b(num(plan.opened)), ` of ${count(l.id.length, "leaf", "leaves")} can match`]
        : [b(count(l.id.length, "leaf", "leaves")), " with their bounds"],
    );
    const left = filtered ? plan.inline_left.reduce((a, x) => a + x, 0) : inline.n;
    put(
      this.fileLabel,
      filtered
        ? [b(num(left)), ` of ${count(inline.n, "recent file")} can match`]
        : [b(count(inline.n, "recent file")), ", listed here"],
    );
    const added = inline.added.reduce((a, cell) => a + (inline.count[cell] ?? 1), 0),
      changed = inline.modified.length;
    const did = (marks && state.commit) || {},
      gone = marks ? tree.gone.leaves.length : 0,
      retired = marks ? Object.values(l.died).reduce((a, x) => a + x, 0) : 0;
    put(
      this.deeds,
      did.flushed
        ? h("span", { class: "tag add" }, `flush of ${count(did.flushed, "entry", "entries")}`)
        : null,
      did.split ? h("span", { class: "tag repl" }, `split over ${count(did.split, "leaf", "leaves")}`) : null,
      did.merged ? h("span", { class: "tag repl" }, `${count(did.merged, "leaf", "leaves")} merged`) : null,
      gone ? h("span", { class: "tag plain" }, `${count(gone, "leaf", "leaves")} replaced`) : null,
      retired ? h("span", { class: "tag dead" }, `${count(retired, "position")} died`) : null,
      did.rows_removed ? h("span", { class: "tag dead" }, `${count(did.rows_removed, "row")} deleted`) : null,
      marks ? h("span", { class: "tag add" }, "new root") : null,
    );
    put(
      this.news,
      marks && added ? h("span", { class: "tag add" }, `+${num(added)} by this commit`) : null,
      marks && changed ? h("span", { class: "tag dead" }, `${num(changed)} with new vectors`) : null,
      inline.deletes ? h("span", { class: "tag plain" }, count(inline.deletes, "delete file")) : null,
    );
    this.leaves(state, kind);
    this.files(state);
    if (kind === "filter" && !calm()) {
      this.element.classList.remove("ping");
      void this.element.offsetWidth;
      this.element.classList.add("ping");
    }
  }

  leaves(state, kind) {
    const { tree, column, marks } = state,
      l = tree.leaves,
      n = l.id.length,
      fresh = new Set(marks ? l.fresh : []);
    const cell = (i) => ({
      lo: column?.leaves.lo[i] ?? 0,
      hi: column?.leaves.hi[i] ?? 1,
      told: verdict(state, i),
    });
    if (!n) return put(this.leafCells, h("span", { class: "lab" }, "none: the root lists every file"));
    if (n > AS_ELEMENTS)
      return this.strip(this.leafCells, n, (i) => {
        const { lo, hi, told } = cell(i);
        return { t: (lo + hi) / 2, off: told?.off, hit: told && !told.off, add: fresh.has(i) };
      });
    return put(
      this.leafCells,
      l.id.map((_, i) => {
        const { lo, hi, told } = cell(i);
        return h("i", {
          class:
            [told ? (told.off ? "off" : "hit") : "", fresh.has(i) ? "a" : marks && l.died[i] ? "m" : ""]
              .join(" ")
              .trim() || null,
          css: {
            "--c": gradient(lo, hi),
            "--d": `${kind === "filter" && !calm() ? i * Math.min(9, 400 / n) : 0}ms`,
          },
        });
      }),
    );
  }

  files(state) {
    const { tree, plan, filtered, column, marks } = state,
      inline = tree.inline,
      n = inline.count.length;
    const added = new Set(marks ? inline.added : []),
      changed = new Set(marks ? inline.modified : []),
      at = column?.inline;
    const cell = (i) => ({
      t: ((at?.lo[i] ?? 0) + (at?.hi[i] ?? 1)) / 2,
      off: filtered && !plan.inline_left[i],
      add: added.has(i),
      mod: changed.has(i),
    });
    if (!n) return put(this.fileCells, h("span", { class: "lab" }, "none: the files are all in leaves"));
    if (n > AS_ELEMENTS) return this.strip(this.fileCells, n, cell);
    return put(
      this.fileCells,
      inline.count.map((_, i) => {
        const c = cell(i);
        return h("i", {
          class: [c.add ? "a" : c.mod ? "m" : "", c.off ? "off" : ""].join(" ").trim() || null,
          css: { "--c": ramp(c.t) },
        });
      }),
    );
  }

  /** Many cells on one canvas. */
  strip(host, n, cell) {
    const canvas = h("canvas", { class: "strip" });
    put(host, canvas);
    const W = canvas.clientWidth || 400,
      dpr = devicePixelRatio || 1,
      g = canvas.getContext("2d"),
      w = W / n;
    Object.assign(canvas, { width: W * dpr, height: 14 * dpr });
    g.setTransform(dpr, 0, 0, dpr, 0, 0);
    const accent = token("--accent"),
      line = token("--line2"),
      add = token("--add");
    for (let i = 0; i < n; i++) {
      const c = cell(i);
      g.fillStyle = c.off ? line : ramp(c.t);
      g.fillRect(i * w, c.off ? 5 : 1, Math.max(0.6, w - (w > 4 ? 1 : 0)), c.off ? 4 : 12);
      if (c.hit || c.add) {
        g.fillStyle = c.add ? add : accent;
        g.fillRect(i * w, 11, Math.max(1, w - (w > 4 ? 1 : 0)), 3);
      }
    }
  }
}
