// The commits under the tree: bars on main, branches as lanes, tags as flags. Drag, step or play.

import { b, h, icon, put, s } from "../dom.js";
import { calm } from "../theme.js";
import { count, day, num, short, size, when } from "../words.js";

const HEIGHT = 86,
  BASE = 54,
  UP = 22,
  EDGE = 8,
  LANE_Y = 22;
const KIND = { append: "append", delete: "delete", replace: "replace", overwrite: "replace" };

export const kindOf = (operation) => KIND[operation] ?? "append";

/** The sentence of a commit with its first clause in bold. */
export function sentence(text) {
  const end = text.search(/[.,:;](\s|$)/);
  return end < 0 ? [b(text)] : [b(text.slice(0, end)), text.slice(end)];
}

export class Timeline {
  /** `onpick(index)` is told which commit was chosen. */
  constructor({ onpick }) {
    this.onpick = onpick;
    this.at = -1;
    this.svg = s("svg", { "aria-hidden": "true" });
    this.scrub = h("input", { type: "range", min: 0, max: 0, step: 1, "aria-label": "Commit" });
    this.plot = h("div", { class: "plot" }, this.svg, this.scrub);
    const button = (name, label, run) =>
      h("button", { class: "btn icon", type: "button", "aria-label": label, onclick: run }, icon(name));
    this.prev = button("prev", "Previous commit", () => this.step(-1));
    this.player = button("play", "Play the commits", () => (this.playing ? this.stop() : this.play()));
    this.next = button("next", "Next commit", () => this.step(1));
    this.say = h("p", { class: "say", id: "say" });
    this.when = h("span", { class: "when" });
    this.latest = h(
      "button",
      {
        class: "btn",
        type: "button",
        hidden: true,
        onclick: () => {
          this.stop();
          this.pick(this.headOf(this.lane()));
        },
      },
      "Latest",
    );
    this.acts = h("span", { class: "tacts" });
    this.wrote = h("div", { class: "wrote" });
    this.element = h(
      "section",
      { class: "time", "aria-label": "Commits" },
      h(
        "div",
        { class: "thead" },
        this.prev,
        this.player,
        this.next,
        this.say,
        this.when,
        this.latest,
        this.acts,
      ),
      this.plot,
      this.wrote,
    );
    this.scrub.addEventListener("input", () => {
      this.stop();
      this.pick(Number(this.scrub.value));
    });
    this.plot.addEventListener("pointerdown", (event) => {
      this.stop();
      this.plot.setPointerCapture(event.pointerId);
      this.scrub.focus({ preventScroll: true });
      this.pick(this.under(event));
    });
    this.plot.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.pick(this.under(event));
    });
  }

  load(commits) {
    this.c = commits;
    this.scrub.max = Math.max(0, commits.id.length - 1);
    this.draw();
  }

  index(snapshot) {
    return this.c.id.indexOf(snapshot);
  }
  lane() {
    return this.c.lane[this.at] ?? 0;
  }
  headOf(lane) {
    return this.c.lane.lastIndexOf(lane);
  }
  x(i) {
    const n = this.c.id.length;
    return n < 2 ? this.width / 2 : EDGE + (i * (this.width - 2 * EDGE)) / (n - 1);
  }

  under(event) {
    const box = this.plot.getBoundingClientRect(),
      n = this.c.id.length;
    return Math.round(((event.clientX - box.left - EDGE) / (box.width - 2 * EDGE)) * (n - 1));
  }

  pick(i) {
    const to = Math.max(0, Math.min(this.c.id.length - 1, i));
    if (to !== this.at) this.onpick(to);
  }

  /** Along the branch that is looked at: to the parent, or to the next commit of the lane. */
  along(d) {
    const { c } = this;
    if (d < 0) {
      const parent = c.parent[this.at];
      return parent === null ? this.at : Math.max(0, this.index(parent));
    }
    const next = c.lane.indexOf(this.lane(), this.at + 1);
    return next < 0 ? this.at : next;
  }

  step(d) {
    this.stop();
    this.pick(this.along(d));
  }

  play() {
    if (this.along(1) === this.at) this.pick(this.c.lane.indexOf(this.lane()));
    this.playing = true;
    this.button();
    const tick = async () => {
      if (!this.playing) return;
      const next = this.along(1);
      if (next === this.at) {
        this.stop();
        return;
      }
      await this.onpick(next);
      setTimeout(tick, calm() ? 900 : this.c.id.length > 60 ? 130 : 420);
    };
    tick();
  }

  stop() {
    if (this.playing) {
      this.playing = false;
      this.button();
    }
  }

  button() {
    put(this.player, icon(this.playing ? "pause" : "play"));
    this.player.setAttribute("aria-label", this.playing ? "Pause" : "Play the commits");
  }

  draw() {
    const { c } = this,
      n = c.id.length,
      W = (this.width = this.plot.clientWidth || 900),
      kids = [];
    this.svg.setAttribute("viewBox", `0 0 ${W} ${HEIGHT}`);
    this.svg.setAttribute("height", HEIGHT);
    const paths = { append: "", delete: "", replace: "" },
      flushes = [];
    const step = n > 1 ? (W - 2 * EDGE) / (n - 1) : 20,
      wide = Math.max(1, Math.min(4, step * 0.6));
    for (let i = 0; i < n; i++) {
      if (c.lane[i] !== 0) continue;
      const changed = Math.max(c.files_added[i], c.files_removed[i], c.vectors[i], c.leaves_written[i]),
        tall = 3 + Math.min(UP, Math.log10(changed + 1) * 7.5),
        kind = kindOf(c.operation[i]),
        x = this.x(i).toFixed(1);
      paths[kind] +=
        kind === "append"
          ? `M${x} ${BASE}v-${tall.toFixed(1)}`
          : kind === "delete"
            ? `M${x} ${BASE}v${Math.min(12, tall + 2).toFixed(1)}`
            : `M${x} ${BASE + 8}V${BASE - 24}`;
      if (c.flushed[i] || c.merged[i] || c.split[i]) flushes.push(i);
    }
    let last = -99;
    for (let i = 0; i < n; i++) {
      const x = this.x(i);
      if (c.lane[i] || (i && day(c.time[i - 1]) === day(c.time[i])) || x - last < 78 || x > W - 50) continue;
      last = x;
      kids.push(
        s("path", { d: `M${x} ${BASE + 14}v4`, stroke: "var(--line2)" }),
        s("text", { x: x + 4, y: HEIGHT - 3 }, day(c.time[i])),
      );
    }
    kids.push(s("path", { d: `M${EDGE} ${BASE}H${W - EDGE}`, stroke: "var(--line2)" }));
    kids.push(this.branches());
    for (const [kind, colour] of [
      ["append", "--accent"],
      ["delete", "--dead"],
      ["replace", "--repl"],
    ])
      kids.push(
        s("path", {
          d: paths[kind],
          stroke: `var(${colour})`,
          "stroke-width": kind === "append" ? wide : Math.max(2.4, wide),
        }),
      );
    for (const i of flushes)
      kids.push(
        s(
          "path",
          {
            d: c.split[i]
              ? `M${this.x(i)} ${BASE + 2}l4 4.500-4 4.500-4-4.500z`
              : `M${this.x(i) - 3.5} ${BASE + 3}h7l-3.500 6z`,
            fill: c.split[i] ? "var(--repl)" : "var(--ink)",
            stroke: "var(--surface)",
            "stroke-width": 0.6,
          },
          s("title", {}, c.split[i] ? "split" : c.merged[i] ? "merge" : "flush"),
        ),
      );
    kids.push(this.tags(W));
    this.head = s(
      "g",
      {},
      s("path", { d: `M0 0V${BASE + 14}`, stroke: "var(--ink)", "stroke-width": 1.5 }),
      s("circle", { cy: BASE, r: 6, fill: "var(--surface)", stroke: "var(--ink)", "stroke-width": 2 }),
    );
    put(this.svg, kids, this.head);
    this.mark();
  }

  branches() {
    const { c } = this,
      out = [];
    c.lanes.forEach((name, lane) => {
      if (!lane) return;
      const ids = [];
      c.lane.forEach((l, i) => {
        if (l === lane) ids.push(i);
      });
      if (!ids.length) return;
      const from = c.parent[ids[0]] === null ? ids[0] : Math.max(0, this.index(c.parent[ids[0]])),
        a = this.x(from),
        z = this.x(ids.at(-1)),
        y = LANE_Y + ((lane - 1) % 2) * 11;
      out.push(
        s("path", {
          d: `M${a} ${BASE}C${a + 5} ${y + 8} ${a + 3} ${y} ${this.x(ids[0])} ${y}H${z}`,
          fill: "none",
          stroke: "var(--ink3)",
          "stroke-width": 1.3,
        }),
      );
      for (const i of ids) {
        const rust = kindOf(c.operation[i]) === "delete";
        out.push(
          s("circle", {
            cx: this.x(i),
            cy: y,
            r: 2.6,
            fill: rust ? "var(--dead)" : "var(--surface)",
            stroke: rust ? "var(--dead)" : "var(--ink3)",
            "stroke-width": 1.3,
          }),
        );
      }
      if (name)
        out.push(
          s(
            "text",
            z > this.width - 90
              ? { x: z - 7, y: y - 6, class: "lane", "text-anchor": "end" }
              : { x: z + 7, y: y + 4, class: "lane" },
            name,
          ),
        );
    });
    return out;
  }

  tags(W) {
    const out = [];
    let free = -99;
    for (const tag of this.c.refs
      .filter((r) => r.kind === "tag")
      .sort((x, y) => this.index(x.snapshot) - this.index(y.snapshot))) {
      const i = this.index(tag.snapshot);
      if (i < 0) continue;
      const x = this.x(i),
        wide = tag.name.length * 6.4 + 16,
        flip = x + wide > W;
      out.push(
        s(
          "path",
          { d: `M${x} ${BASE}V3h7l-2 3 2 3h-7`, fill: "none", stroke: "var(--ink2)", "stroke-width": 1.2 },
          s("title", {}, tag.name),
        ),
      );
      if (W > 560 && (flip ? x - wide : x) > free) {
        out.push(
          s("text", flip ? { x: x - 5, y: 10, "text-anchor": "end" } : { x: x + 11, y: 10 }, tag.name),
        );
        free = x + (flip ? 0 : wide);
      }
    }
    return out;
  }

  mark() {
    if (!this.head || this.at < 0) return;
    const lane = this.lane();
    this.head.setAttribute("transform", `translate(${this.x(this.at)} 0)`);
    this.head.lastChild.setAttribute("cy", lane ? LANE_Y + ((lane - 1) % 2) * 11 : BASE);
    this.scrub.value = this.at;
  }

  /** Moves to a commit and says what it did. */
  show(i) {
    const { c } = this;
    this.at = i;
    this.mark();
    if (i < 0) return;
    const lane = c.lane[i],
      refs = c.refs.filter((r) => r.snapshot === c.id[i]);
    put(
      this.say,
      h("span", { class: `op ${kindOf(c.operation[i])}` }, icon(c.operation[i])),
      ` Commit ${num(i + 1)} of ${num(c.id.length)}. `,
      sentence(c.text[i]),
    );
    put(this.when, `${when(c.time[i])} UTC`);
    this.latest.hidden = i === this.headOf(lane);
    this.scrub.setAttribute(
      "aria-valuetext",
      `Commit ${i + 1}, ${c.operation[i]}, ${when(c.time[i])}. ${c.text[i]}`,
    );
    const files = c.files_added[i],
      parent = c.parent[i] === null ? -1 : this.index(c.parent[i]),
      leaves = c.leaves_written[i];
    put(
      this.wrote,
      h(
        "span",
        {},
        "Wrote ",
        b(leaves ? `1 root and ${count(leaves, "leaf", "leaves")}` : "1 root, no leaf"),
        `, ${size(c.metadata_bytes[i])}`,
      ),
      files
        ? h(
            "span",
            {},
            b(count(files, "data file")),
            `, ${size(c.data_bytes_written[i])}, ${short(c.rows_added[i])} rows`,
          )
        : null,
      c.vectors[i]
        ? h(
            "span",
            {},
            b(count(c.vectors[i], "deletion vector")),
            c.rows_removed[i] ? `, ${count(c.rows_removed[i], "row")}` : "",
          )
        : null,
      h("span", {}, "on ", b(c.lanes[lane] ?? "no branch")),
      parent >= 0 ? h("span", {}, `parent commit ${num(parent + 1)}`) : null,
      refs.map((r) => h("span", { class: `ref ${r.kind === "branch" ? "branch" : ""}` }, r.name)),
      h(
        "span",
        { class: "tkey", "aria-hidden": "true" },
        [
          ["accent", "append"],
          ["dead", "delete"],
          ["repl", "rewrite"],
        ].map(([t, n]) => h("span", {}, h("i", { css: { background: `var(--${t})` } }), n)),
        h("span", {}, h("i", { class: "tri" }), "flush"),
        c.split.some(Boolean) ? h("span", {}, h("i", { class: "dia" }), "split") : null,
      ),
    );
  }
}
