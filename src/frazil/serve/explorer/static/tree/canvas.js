// Leaves on one canvas: for trees with more of them than a page should have elements.
// One stop of the Tab key; arrows move inside. Above MOST leaves neighbours are merged.

import { h, put } from "../dom.js";
import { calm, ramp, token } from "../theme.js";
import { count, num } from "../words.js";
import { boxes as layBoxes, groups, gutter, ranges as layRanges } from "./layout.js";
import { bandsOf, leafLabel, verdict } from "./model.js";

export const MOST = 1500;
const FALL_MS = 260,
  WAVE_MS = 420;

export class Canvas {
  constructor(host, { onopen, ontip }) {
    this.host = host;
    this.onopen = onopen;
    this.ontip = ontip;
    this.cur = 0;
    this.shares = null;
    this.canvas = h("canvas", { class: "forest", tabindex: 0, role: "img" });
    this.said = h("p", { class: "sr", "aria-live": "polite" });
    this.canvas.addEventListener("mousemove", (event) => {
      const i = this.under(event);
      i < 0 ? this.ontip(null) : this.ontip(event, this.groups[i].from, this.groups[i].n);
    });
    this.canvas.addEventListener("mouseleave", () => this.ontip(null));
    this.canvas.addEventListener("click", (event) => {
      const i = this.under(event);
      if (i >= 0) {
        this.cur = i;
        this.onopen(this.state.tree.leaves.id[this.groups[i].from]);
      }
    });
    this.canvas.addEventListener("keydown", (event) => this.roam(event));
    this.canvas.addEventListener("focus", () => this.paint());
    this.canvas.addEventListener("blur", () => this.paint());
    put(host, this.canvas, this.said);
  }

  still() {}

  draw(state, kind) {
    this.state = state;
    const { tree, column } = state,
      l = tree.leaves,
      W = this.host.clientWidth,
      H = this.host.clientHeight;
    this.groups = groups(l.id.length, MOST);
    const sum = (values, g) => {
      let n = 0;
      for (let i = g.from; i < g.to; i++) n += values[i];
      return n;
    };
    const edge = (values, g, pick, none) => {
      let t = null;
      for (let i = g.from; i < g.to; i++) {
        const x = values?.[i] ?? none;
        t = t === null ? x : pick(t, x);
      }
      return t;
    };
    this.entries = this.groups.map((g) => sum(l.entries, g));
    this.dead = this.groups.map((g) => sum(l.dead, g));
    this.lo = this.groups.map((g) => edge(column?.leaves.lo, g, Math.min, 0));
    this.hi = this.groups.map((g) => edge(column?.leaves.hi, g, Math.max, 1));
    this.opened = this.groups.map((g) => {
      let n = 0;
      for (let i = g.from; i < g.to; i++) n += verdict(state, i)?.off ? 0 : 1;
      return n;
    });
    this.places =
      state.drawing === "ranges"
        ? layRanges(this.entries, this.lo, this.hi, W, H)
        : layBoxes(this.entries, W, H);
    const dpr = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: W * dpr, height: H * dpr });
    this.canvas.style.height = `${H}px`;
    this.dpr = dpr;
    this.cur = Math.min(this.cur, this.groups.length - 1);
    const kept = state.filtered ? this.opened.filter(Boolean).length : this.groups.length;
    this.canvas.setAttribute(
      "aria-label",
      `${count(l.id.length, "leaf", "leaves")} in root order` +
        (state.filtered ? `, ${count(state.plan.opened, "leaf", "leaves")} opened` : "") +
        ". Arrow keys move, Enter opens a leaf. Choose Table for a list.",
    );
    this.canvas.dataset.kept = kept;
    // Asked for once: a frame of the fall must not ask the page for its styles again.
    this.palette = {
      accent: token("--accent"),
      line: token("--line2"),
      dead: token("--dead"),
      add: token(state.commit?.split ? "--repl" : "--add"),
      ink: token("--ink"),
      soft: token("--accent-soft"),
      fresh: new Set(state.marks ? l.fresh : []),
      colours: Array.from({ length: 33 }, (_, k) => ramp(k / 32)),
    };
    this.fall(kind);
  }

  /** Moves each leaf to its new state, one after the other, so that one sees them fall away. */
  fall(kind) {
    cancelAnimationFrame(this.frame);
    const goal = Float32Array.from(this.opened, (n) => (n ? 1 : 0)),
      n = goal.length;
    const from = this.shares?.length === n ? Float32Array.from(this.shares) : goal;
    this.shares = Float32Array.from(from);
    if (kind !== "filter" || calm() || goal.every((share, i) => share === from[i])) {
      this.shares = goal;
      this.paint();
      return;
    }
    const start = performance.now();
    const step = (now) => {
      let moving = false;
      for (let i = 0; i < n; i++) {
        const t = Math.min(1, Math.max(0, (now - start - (i / n) * WAVE_MS) / FALL_MS));
        if (t < 1) moving = true;
        this.shares[i] = from[i] + (goal[i] - from[i]) * (1 - (1 - t) ** 3);
      }
      this.paint();
      if (moving) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  paint() {
    if (!this.state) return;
    const g = this.canvas.getContext("2d"),
      { state } = this,
      l = state.tree.leaves,
      W = this.host.clientWidth,
      H = this.host.clientHeight;
    const { accent, line, dead, add, ink, soft, fresh, colours } = this.palette,
      tone = (t) => colours[Math.round(t * 32)];
    g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    g.clearRect(0, 0, W, H);
    if (state.drawing === "ranges")
      for (const [x, y] of bandsOf(state)) {
        g.fillStyle = soft;
        g.fillRect(gutter + x * (W - gutter) - 1, 0, (y - x) * (W - gutter) + 2, H);
      }
    this.places.forEach((at, i) => {
      const share = state.filtered ? this.shares[i] : 1,
        a = this.lo[i] ?? 0,
        z = this.hi[i] ?? 1,
        shrink = (1 - share) * Math.min(2.5, at.w / 8, at.h / 8);
      const x = at.x + shrink,
        y = at.y + shrink,
        w = at.w - 2 * shrink,
        hh = at.h - 2 * shrink;
      if (share < 1) {
        g.strokeStyle = line;
        g.lineWidth = 1;
        g.globalAlpha = 0.85;
        if (at.bar) {
          g.fillStyle = line;
          g.fillRect(x, y, w, hh);
        } else g.strokeRect(x + 0.5, y + 0.5, w - 1, hh - 1);
      }
      g.globalAlpha = share;
      if (share > 0) {
        if (z - a < 0.06 || w < 12) g.fillStyle = tone((a + z) / 2);
        else {
          const fill = g.createLinearGradient(x, 0, x + w, 0);
          for (let k = 0; k <= 4; k++) fill.addColorStop(k / 4, tone(a + ((z - a) * k) / 4));
          g.fillStyle = fill;
        }
        g.fillRect(x, y, w, hh);
        if (state.filtered && !at.bar) {
          g.strokeStyle = accent;
          g.lineWidth = w > 12 ? 1.5 : 1;
          g.strokeRect(x + 0.5, y + 0.5, w - 1, hh - 1);
        }
      }
      g.globalAlpha = 1;
      if (this.dead[i] && hh > 5 && !at.bar) {
        g.fillStyle = dead;
        g.globalAlpha = share < 1 ? 0.5 : 1;
        g.fillRect(x, y + hh - 2, Math.max(2, (w * this.dead[i]) / this.entries[i]), 2);
        g.globalAlpha = 1;
      }
      if (fresh.size)
        for (let k = this.groups[i].from; k < this.groups[i].to; k++)
          if (fresh.has(k)) {
            g.strokeStyle = add;
            g.lineWidth = 2;
            g.strokeRect(at.x + 1, at.y + 1, at.w - 2, at.h - 2);
            break;
          }
      if (this.groups[i].n === 1 && state.leaf === l.id[this.groups[i].from]) {
        g.strokeStyle = ink;
        g.lineWidth = 2.5;
        g.strokeRect(at.x, at.y, at.w, at.h);
      }
    });
    if (document.activeElement === this.canvas) {
      const at = this.places[this.cur];
      g.strokeStyle = ink;
      g.lineWidth = 2;
      g.strokeRect(at.x - 1, at.y - 1, at.w + 2, at.h + 2);
    }
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect(),
      x = event.clientX - box.left,
      y = event.clientY - box.top;
    return this.places.findIndex(
      (at) => x >= at.x && x <= at.x + at.w + 2 && y >= at.y && y <= at.y + at.h + 2,
    );
  }

  roam(event) {
    const row = this.places.findIndex((at) => at.y > this.places[0].y + 1),
      per = row > 0 ? row : 1;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: per, ArrowUp: -per }[event.key],
      end = { Home: 0, End: this.groups.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.onopen(this.state.tree.leaves.id[this.groups[this.cur].from]);
      return;
    }
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    this.cur = end ?? Math.max(0, Math.min(this.groups.length - 1, this.cur + step));
    const g = this.groups[this.cur];
    put(
      this.said,
      g.n === 1
        ? leafLabel(this.state, g.from)
        : `Leaves ${num(g.from + 1)} to ${num(g.to)}, ${num(this.entries[this.cur])} entries, ` +
            `${this.opened[this.cur]} of ${g.n} opened`,
    );
    this.paint();
  }

  focus() {
    this.canvas.focus();
  }

  clear() {
    cancelAnimationFrame(this.frame);
    put(this.host);
  }
}
