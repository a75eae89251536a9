// The tree of one snapshot: type a filter and see what it prunes, scrub and see what commits wrote.

import { aborted } from "../api.js";
import { b, button, code, h, put, trouble } from "../dom.js";
import { act } from "../dialogs.js";
import { gradient, watch } from "../theme.js";
import { Boxes } from "../tree/boxes.js";
import { caption } from "../tree/caption.js";
import { Canvas } from "../tree/canvas.js";
import { Files } from "../tree/files.js";
import { FilterBox, examples } from "../tree/filter.js";
import { List } from "../tree/list.js";
import { bandsOf, entriesText, leafName, rangeText, verdict } from "../tree/model.js";
import { Panel } from "../tree/panel.js";
import { Root } from "../tree/root.js";
import { counters } from "../tree/side.js";
import { grown } from "../tree/steps.js";
import { Timeline } from "../tree/timeline.js";
import { commitsOf } from "../commits.js";
import { count, num } from "../words.js";

const AS_ELEMENTS = 300;
const FEW = 6;
const KEPT_TREES = 48;
const REST_MS = 300;

export async function mount(host, page) {
  const [overview, commits] = await Promise.all([page.overview(), commitsOf(page.api)]);
  const view = new TreeView(host, page, overview, commits);
  await view.start();
  return view;
}

class TreeView {
  constructor(host, page, overview, commits) {
    const p = page.params;
    this.host = host;
    this.page = page;
    this.overview = overview;
    this.commits = commits;
    this.trees = new Map();
    this.planning = null;
    this.moving = null;
    this.state = {
      where: p.where ?? "",
      filtered: false,
      plan: null,
      tree: null,
      column: null,
      error: null,
      marks: Boolean(p.snapshot),
      names: new Map(overview.columns.map((c) => [c.id, c.path])),
      drawing: ["boxes", "ranges", "table"].includes(p.view) ? p.view : "boxes",
      leaf: p.leaf ?? null,
      file: p.file ?? null,
    };
    this.pinned = p.color ?? null;
    this.filter = new FilterBox({
      columns: () => this.overview.columns,
      complete: (where, at) => page.api.get("complete", { where, at }),
      value: this.state.where,
      placeholder: "a filter on any column",
      onchange: (text) => this.typed(text),
    });
    this.root = new Root();
    this.timeline = new Timeline({ onpick: (i) => this.travel(i) });
    this.build();
  }

  build() {
    const seg = (id, label, title) =>
      h(
        "button",
        {
          type: "button",
          "data-view": id,
          title,
          onclick: () => {
            this.state.drawing = id;
            this.renderer?.clear();
            this.renderer = null;
            this.draw();
          },
        },
        label,
      );
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Example filters" });
    this.caption = h("p", { class: "caption", "aria-live": "polite" });
    this.colour = h("select", {
      class: "pick mono",
      id: "colour",
      onchange: () => this.recolour(this.colour.value),
    });
    this.legend = h("div", { class: "legend", "aria-hidden": "true" });
    this.segments = h(
      "div",
      { class: "seg", role: "group", "aria-label": "Drawing" },
      seg("boxes", "Boxes", "Boxes, sized by entries"),
      seg("ranges", "Ranges", "Bars, from lower to upper bound"),
      seg("table", "Table", "A list of the leaves"),
    );
    this.leaves = h("div", { class: "leaves", role: "group", "aria-label": "Leaves of the root" });
    this.key = h("p", { class: "words" });
    this.side = h("aside", { class: "side", "aria-label": "What planning did" });
    this.panel = new Panel(this.side, {
      page: this.page,
      onclose: () => this.close(),
      onfile: (id) => this.openFile(id),
    });
    this.left = h(
      "div",
      { class: "left" },
      this.filter.element,
      this.chips,
      this.caption,
      h(
        "div",
        { class: "lhead" },
        h("label", { for: "colour" }, "Coloured by"),
        this.colour,
        this.legend,
        this.segments,
      ),
      this.root.element,
      this.leaves,
      this.key,
    );
    this.grid = h("section", { class: "page", "aria-label": "Tree" }, this.left, this.side);
    put(this.host, this.grid, this.timeline.element);
    this.branches = h("select", {
      class: "pick",
      "aria-label": "Branch or tag",
      onchange: () => this.travel(this.timeline.index(this.branches.value), true),
    });
    this.page.tools(this.branches);
    this.onkey = (event) => {
      if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) {
        event.preventDefault();
        this.filter.input.focus();
        this.filter.input.select();
      }
      if (event.key === "Escape" && this.state.leaf && !document.querySelector("dialog[open]")) this.close();
    };
    addEventListener("keydown", this.onkey);
    this.unwatch = watch(() => {
      if (this.state.tree) this.draw();
    });
    this.resize = new ResizeObserver(() => {
      if (!this.state.tree) return;
      this.renderer?.still();
      this.drawLeaves();
      if (this.timeline.plot.clientWidth !== this.timeline.width) this.timeline.draw();
    });
  }

  async start() {
    this.refsList();
    this.timeline.load(this.commits);
    const wanted = this.page.params.snapshot,
      ref = this.commits.refs.find((r) => r.name === wanted);
    const at = this.commits.id.length
      ? this.timeline.index(ref?.snapshot ?? wanted ?? this.overview.snapshot)
      : -1;
    const index = at < 0 ? this.commits.id.length - 1 : at;
    this.page.tableFacts(this.overview);
    await this.load(index, null);
    this.resize.observe(this.left);
  }

  refsList() {
    put(
      this.branches,
      this.commits.refs.map((r) =>
        h("option", { value: r.snapshot }, r.kind === "tag" ? `tag ${r.name}` : r.name),
      ),
    );
    this.branches.hidden = this.commits.refs.length < 2;
  }

  snapshotAt(i) {
    return i < 0 ? null : this.commits.id[i];
  }

  /**
   * The tree of a snapshot with the column on screen. Trees seen before are kept; another one is
   * sent as a step from the tree on screen, so that a leaf is sent once.
   */
  async treeOf(snapshot, signal) {
    const columns = this.wanted ?? "",
      key = `${snapshot}/${columns}`,
      here = this.state.tree;
    if (!this.trees.has(key)) {
      const known =
        columns &&
        here?.snapshot &&
        here.snapshot !== snapshot &&
        here.columns.some((c) => String(c.id) === columns);
      const tree = await this.page.api.get(
        "tree",
        { snapshot, columns, base: known ? here.snapshot : null },
        signal,
      );
      this.trees.set(key, tree.base ? grown(here, tree) : tree);
      if (this.trees.size > KEPT_TREES) this.trees.delete(this.trees.keys().next().value);
    }
    return this.trees.get(key);
  }

  planOf(snapshot, where, signal) {
    return this.page.api.get("plan", { snapshot, where }, signal);
  }

  /** Shows commit `i`: its tree and its plan, asked for at once. */
  async load(i, kind) {
    const { state } = this,
      snapshot = this.snapshotAt(i);
    this.moving?.abort();
    this.planning?.abort();
    const mine = (this.moving = new AbortController());
    this.timeline.show(i);
    clearTimeout(this.rest);
    try {
      // A full scan opens every leaf: while a person scrubs without a filter it waits.
      const later = Boolean(state.tree && snapshot && !state.where.trim());
      const [tree, plan] = await Promise.all([
        this.treeOf(snapshot, mine.signal),
        snapshot && !later ? this.planOf(snapshot, state.where, mine.signal) : null,
      ]);
      if (mine.signal.aborted) return;
      state.tree = tree;
      state.commit = this.did(i);
      this.accept(plan);
      if (later) this.rest = setTimeout(() => this.fullScan(snapshot, mine), REST_MS);
      if (state.leaf && state.leaf !== "root" && !tree.leaves.id.includes(state.leaf))
        state.leaf = state.file = null;
      await this.chooseColumn();
      this.shownAt = i;
      this.draw(kind);
      if (state.file) this.panel.showFile(state, state.file);
      this.offerExamples();
    } catch (error) {
      if (aborted(error)) return;
      if (!state.tree) throw error;
      put(this.caption, trouble(error));
    }
  }

  async fullScan(snapshot, mine) {
    try {
      const plan = await this.planOf(snapshot, "", mine.signal);
      if (mine.signal.aborted || this.state.tree.snapshot !== snapshot || this.state.where.trim()) return;
      this.accept(plan);
      this.drawSide();
    } catch (error) {
      if (!aborted(error)) put(this.caption, trouble(error));
    }
  }

  /** What a commit did to the tree, for the marks on it. */
  did(i) {
    const c = this.commits;
    return i < 0
      ? null
      : {
          flushed: c.flushed[i],
          merged: c.merged[i],
          split: c.split[i],
          vectors: c.vectors[i],
          rows_removed: c.rows_removed[i],
        };
  }

  accept(plan) {
    const { state } = this;
    if (!plan) {
      state.plan = null;
      state.filtered = false;
      return;
    }
    state.error = plan.ok ? null : plan.error;
    if (plan.ok) {
      state.plan = plan;
      state.filtered = Boolean(state.where.trim());
      state.understood = state.where;
    } else if (
      !state.plan ||
      state.plan.snapshot !== state.tree.snapshot ||
      state.plan.leaf_why.length !== state.tree.leaves.id.length
    ) {
      // Nothing to show for this snapshot yet: the tree without a filter.
      state.plan = null;
      state.filtered = false;
    }
    this.filter.mark(state.error);
  }

  /** Colour follows the filter's first column until a person picks one. */
  async chooseColumn() {
    const { state } = this,
      { tree } = state;
    const bounded = (id) => this.overview.columns.find((c) => c.id === id && c.has_bounds);
    const name = this.pinned,
      byName = name && this.overview.columns.find((c) => c.path === name);
    const first = state.filtered ? state.plan.columns.find(bounded) : undefined;
    const id = byName?.id ?? first ?? state.column?.id ?? tree.columns[0]?.id;
    if (id !== undefined && !tree.columns.some((c) => c.id === id) && bounded(id)) {
      this.wanted = String(id);
      state.tree = await this.treeOf(tree.snapshot);
    }
    state.column = state.tree.columns.find((c) => c.id === id) ?? state.tree.columns[0] ?? null;
    // From now on the column on screen is enough.
    if (state.column) this.wanted = String(state.column.id);
  }

  async recolour(name) {
    this.pinned = name;
    await this.chooseColumn();
    this.draw();
  }

  /** One keystroke: one request; the one before it is given up. */
  async typed(text) {
    const { state } = this;
    state.where = text;
    this.planning?.abort();
    const mine = (this.planning = new AbortController());
    this.pressChips();
    if (!state.tree?.snapshot) return;
    try {
      const plan = await this.planOf(state.tree.snapshot, text, mine.signal);
      if (mine.signal.aborted) return;
      const before = state.plan;
      this.accept(plan);
      // A filter that cannot be read yet leaves the drawing as it is.
      if (!plan.ok && state.plan === before) {
        caption(this.caption, state);
        this.save();
        return;
      }
      if (plan.ok) await this.chooseColumn();
      this.draw("filter");
    } catch (error) {
      if (!aborted(error)) put(this.caption, trouble(error));
    }
  }

  /** To a commit of the timeline. Only the last one asked for is drawn. */
  async travel(i, jump = false) {
    if (i < 0) return;
    this.state.marks = true;
    if (this.timeline.playing || jump) {
      await this.load(i, "commit");
      return;
    }
    this.timeline.show(i);
    clearTimeout(this.soon);
    this.soon = setTimeout(
      () => this.load(this.timeline.at, "commit"),
      this.trees.has(`${this.snapshotAt(i)}/${this.wanted ?? ""}`) ? 0 : 70,
    );
  }

  offerExamples() {
    if (this.chips.childElementCount || !this.state.tree.columns.length) return;
    const made = examples(this.state.tree);
    put(
      this.chips,
      h("span", {}, "Try"),
      made.map(([label, where]) =>
        h(
          "button",
          {
            class: "chip",
            type: "button",
            "data-where": where,
            title: where || "every file",
            onclick: () => {
              this.pinned = null;
              this.filter.set(where);
            },
          },
          label,
        ),
      ),
    );
    this.pressChips();
  }

  pressChips() {
    for (const chip of this.chips.querySelectorAll(".chip"))
      chip.setAttribute("aria-pressed", String(chip.dataset.where === this.state.where.trim()));
  }

  draw(kind) {
    const { state } = this;
    caption(this.caption, state);
    this.pressChips();
    this.root.draw(state, kind);
    this.drawHead();
    this.drawLeaves(kind);
    this.drawSide();
    this.save();
  }

  drawHead() {
    const { state } = this,
      c = state.column;
    const options = this.overview.columns.filter((each) => each.has_bounds);
    if (this.colour.childElementCount !== options.length)
      put(
        this.colour,
        options.map((each) => h("option", { value: each.path }, each.path)),
      );
    this.colour.value = this.overview.columns.find((each) => each.id === c?.id)?.path ?? "";
    this.colour.disabled = !options.length;
    for (const button of this.segments.children)
      button.setAttribute("aria-pressed", String(button.dataset.view === state.drawing));
    put(
      this.legend,
      c
        ? [
            h("i", { class: "ramp", css: { background: gradient(0, 1) } }),
            bandsOf(state).map(([x, y]) =>
              h("i", {
                class: "sel",
                css: { left: `calc(${x * 100}% - 2px)`, width: `calc(${(y - x) * 100}% + 4px)` },
              }),
            ),
            h("span", {}, c.lo),
            h("span", { class: "hi" }, c.hi, c.scale === "log" ? " (log)" : ""),
          ]
        : null,
    );
  }

  drawLeaves(kind) {
    const { state } = this,
      n = state.tree.leaves.id.length;
    const inline = state.tree.inline.n;
    const wanted = n
      ? state.drawing === "table"
        ? List
        : n > AS_ELEMENTS
          ? Canvas
          : Boxes
      : inline
        ? Files
        : null;
    this.segments.hidden = !n;
    this.leaves.classList.toggle("few", n > 0 && n <= FEW && wanted === Boxes);
    this.words(wanted);
    if (!wanted) {
      this.renderer?.clear();
      this.renderer = null;
      put(this.leaves, h("div", { class: "none" }, h("p", {}, "No files in this snapshot.")));
      return;
    }
    if (!(this.renderer instanceof wanted)) {
      this.renderer?.clear();
      put(this.leaves);
      this.renderer = new wanted(this.leaves, {
        onopen: (id) => this.open(id),
        ontip: (event, i, many) => this.tip(event, i, many),
        page: this.page,
        onfile: (id) => this.openFile(id),
        onall: () => this.open("root"),
      });
      this.renderer.still();
    }
    this.renderer.draw(state, kind);
  }

  /** What the drawing means, in words. */
  words(wanted) {
    const { column, drawing, filtered } = this.state;
    const isDrawn = wanted === Boxes || wanted === Canvas;
    this.key.hidden = !isDrawn;
    if (!isDrawn) return;
    put(
      this.key,
      drawing === "ranges" ? "Each bar" : "Each box",
      " is a leaf: a metadata file that lists data files; the number on it counts those. ",
      drawing === "ranges"
        ? "It reaches from the lowest to the highest value"
        : "The line and the colour show where its values",
      column ? [" of ", code(column.name)] : "",
      drawing === "ranges" ? ". " : " lie. ",
      filtered ? "Grey leaves are not opened. " : "",
      this.state.tree.leaves.dead.some((n) => n) ? "Red marks are dead entries: files that are gone." : "",
    );
  }

  drawSide() {
    const { state } = this,
      open = Boolean(state.leaf || state.file);
    this.grid.classList.toggle("open", open);
    this.side.classList.toggle("det", open);
    this.side.classList.toggle("stale", !open && !state.plan && Boolean(state.tree.snapshot));
    if (!open) {
      if (state.plan || !state.tree.snapshot) counters(this.side, state);
    } else if (state.leaf && !state.file) this.panel.leaf(state);
  }

  open(id) {
    this.state.leaf = this.state.leaf === id ? null : id;
    this.state.file = null;
    this.opened = true;
    this.draw();
    this.renderer?.still();
    if (this.state.leaf) document.getElementById("back")?.focus({ preventScroll: true });
  }

  openFile(id) {
    this.state.file = id;
    if (id === null) this.panel.leaf(this.state);
    else this.panel.showFile(this.state, id);
    this.save();
  }

  close() {
    const id = this.state.leaf;
    this.state.leaf = this.state.file = null;
    this.draw();
    this.renderer?.focus(id);
  }

  tip(event, i, many = 1) {
    const tip = document.getElementById("tip"),
      { state } = this;
    if (!event || i < 0) {
      tip.classList.remove("on");
      return;
    }
    const told = verdict(state, i);
    put(
      tip,
      many > 1
        ? [
            b(`Leaves ${num(i + 1)} to ${num(i + many)}`),
            `${count(many, "leaf", "leaves")} drawn as one; click to open the first`,
          ]
        : [
            b(`${leafName(i)} · ${entriesText(state.tree, i)}`),
            state.column ? `${state.column.name} ${rangeText(state.column, i)}` : "",
            told?.off
              ? [h("br"), `its bounds rule out ${told.off.text}`]
              : told
                ? [h("br"), `${count(told.left, "file")} left`]
                : null,
          ],
    );
    tip.style.left = `${Math.max(8, Math.min(innerWidth - 292, event.clientX + 14))}px`;
    tip.style.top = `${event.clientY > innerHeight - 130 ? event.clientY - 84 : event.clientY + 16}px`;
    tip.classList.add("on");
  }

  save() {
    const { state } = this,
      snapshot = this.snapshotAt(this.shownAt),
      head = snapshot === this.overview.snapshot;
    this.page.save({
      where: state.where,
      snapshot: head ? null : snapshot,
      color: this.pinned,
      view: state.drawing === "boxes" ? null : state.drawing,
      leaf: state.leaf,
      file: state.file,
    });
    this.branches.querySelector("[data-here]")?.remove();
    if (this.commits.refs.every((r) => r.snapshot !== snapshot))
      this.branches.append(
        h("option", { value: snapshot, "data-here": "" }, `commit ${num(this.shownAt + 1)}`),
      );
    this.branches.value = snapshot;
    const c = this.commits,
      i = this.shownAt;
    put(
      this.timeline.acts,
      !head && snapshot && !this.page.session.read_only
        ? button(() => this.rollback(snapshot), "Roll back to here…")
        : null,
    );
    if (i >= 0)
      this.page.tableFacts({
        ...this.overview,
        rows: c.rows[i],
        files: c.files[i],
        bytes: c.bytes[i],
        snapshot,
      });
  }

  async rollback(snapshot) {
    const done = await act(
      this.page.api,
      "rollback",
      { to: snapshot, branch: "main" },
      { title: "Roll back", verb: "Roll back" },
    );
    if (done) await this.changed(true);
  }

  /** Someone committed, or an action here did: follow the head if it was on screen. */
  async changed(follow = false) {
    const head = this.snapshotAt(this.shownAt) === this.overview.snapshot,
      before = this.snapshotAt(this.shownAt);
    this.overview = await this.page.overview(true);
    this.commits = await commitsOf(this.page.api);
    this.refsList();
    this.timeline.load(this.commits);
    const at = this.timeline.index(head || follow ? this.overview.snapshot : before);
    this.state.marks = true;
    await this.load(at < 0 ? this.commits.id.length - 1 : at, "commit");
  }

  update(params) {
    this.state.where = params.where ?? "";
    this.filter.show(this.state.where);
    this.state.leaf = params.leaf ?? null;
    this.state.file = params.file ?? null;
    this.pinned = params.color ?? null;
    const ref = this.commits.refs.find((r) => r.name === params.snapshot);
    const at = this.timeline.index(ref?.snapshot ?? params.snapshot ?? this.overview.snapshot);
    this.load(at < 0 ? this.commits.id.length - 1 : at, "filter");
  }

  leave() {
    removeEventListener("keydown", this.onkey);
    this.unwatch();
    this.resize.disconnect();
    this.timeline.stop();
    this.moving?.abort();
    this.planning?.abort();
    document.getElementById("tip").classList.remove("on");
  }
}
