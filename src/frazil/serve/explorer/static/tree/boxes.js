// Leaves as elements: up to a few hundred. They move, appear and fall away by CSS transitions.

import { b, h, put, s } from "../dom.js";
import { calm, dark, gradient } from "../theme.js";
import { num } from "../words.js";
import { boxes as layBoxes, gutter, ranges as layRanges } from "./layout.js";
import { bandsOf, bins, freshWord, leafLabel, leafName, live, reasonName, verdict } from "./model.js";

const SIZES = (at) =>
  at.bar
    ? "bar"
    : at.w < 36 || at.h < 18
      ? "tiny"
      : at.w < 68 || at.h < 40
        ? "mini"
        : at.h < 66 || at.w < 84
          ? "small"
          : "";

/** Marks of dead positions at the foot of a box, one per bin. */
function deadMarks(text, height) {
  const top = height < 60 ? 60 : 100 - 900 / height;
  const path = [...bins(text)]
    .map((share, bin) =>
      share ? `M${bin + 0.5} ${100 - (100 - top) * (0.45 + (0.55 * share) / 255)}V100` : "",
    )
    .join("");
  return s(
    "svg",
    { class: "dd", viewBox: "0 0 64 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("path", { d: path }),
  );
}

export class Boxes {
  constructor(host, { onopen, ontip }) {
    this.host = host;
    this.known = new Map();
    this.onopen = onopen;
    this.ontip = ontip;
    this.order = [];
  }

  still() {
    this.host.classList.add("still");
    requestAnimationFrame(() => requestAnimationFrame(() => this.host.classList.remove("still")));
  }

  draw(state, kind) {
    const { tree, column, host = this.host } = { ...state, host: this.host };
    const l = tree.leaves,
      W = host.clientWidth,
      H = host.clientHeight;
    const lo = column?.leaves.lo ?? [],
      hi = column?.leaves.hi ?? [];
    const places =
      state.drawing === "ranges" ? layRanges(l.entries, lo, hi, W, H) : layBoxes(l.entries, W, H);
    const seen = new Set(l.id),
      fresh = new Set(state.marks ? l.fresh : []),
      bands = bandsOf(state);
    for (const [id, box] of this.known)
      if (!seen.has(id)) {
        this.known.delete(id);
        box.classList.add("exit");
        setTimeout(() => box.remove(), 300);
      }
    this.order = l.id;
    l.id.forEach((id, i) =>
      this.one(state, kind, {
        id,
        i,
        at: places[i],
        a: lo[i] ?? 0,
        z: hi[i] ?? 1,
        fresh: fresh.has(i),
        bands,
      }),
    );
    host.querySelectorAll(".beam,.glab").forEach((old) => old.remove());
    if (state.drawing === "ranges") this.beams(places, bands, W);
  }

  one(state, kind, { id, i, at, a, z, fresh, bands }) {
    const { tree, column } = state,
      l = tree.leaves,
      told = verdict(state, i);
    const died = state.marks ? (l.died[i] ?? 0) : 0;
    let box = this.known.get(id);
    if (!box) {
      box = h("button", { class: "leaf enter", type: "button", "data-leaf": id });
      box.addEventListener("click", () => this.onopen(id));
      box.addEventListener("mousemove", (event) => this.ontip(event, this.order.indexOf(id)));
      box.addEventListener("mouseleave", () => this.ontip(null));
      box.addEventListener("keydown", (event) => this.roam(event, id));
      box.style.transform = `translate(${at.x}px,${at.y + 8}px)`;
      this.known.set(id, box);
      this.host.append(box);
      requestAnimationFrame(() => box.classList.remove("enter"));
    }
    box.className = [
      "leaf",
      SIZES(at),
      told ? (told.off ? "off" : "hit") : "",
      fresh ? (state.commit?.split ? "new split" : "new") : died ? "died" : "",
      l.kind[i] === "deletes" ? "dels" : "",
      state.leaf === id ? "cur" : "",
    ]
      .filter(Boolean)
      .join(" ");
    const delay = kind === "filter" && !calm() ? 220 + i * Math.min(14, 700 / l.id.length) : 0;
    const css = {
      transform: `translate(${at.x}px,${at.y}px)`,
      width: `${at.w}px`,
      height: `${at.h}px`,
      "--g": gradient(a, z),
      "--lt": dark() ? "#fff" : "#0b1620",
      "--d": `${delay}ms`,
    };
    for (const [name, value] of Object.entries(css)) box.style.setProperty(name, value);
    box.tabIndex = i ? -1 : 0;
    const slim = at.w < 96;
    const lines = told?.off
      ? ["skipped by", h("br"), b(reasonName(told.off))]
      : told
        ? [
            b(num(told.left)),
            slim ? "" : ` of ${num(live(tree, i))}`,
            h("br"),
            told.left === 1 && slim ? "file left" : "files left",
          ]
        : !column
          ? [num(live(tree, i)), h("br"), "entries"]
          : column.leaves.lo_text[i] === null
            ? ["no bounds of", h("br"), b(column.name)]
            : [
                column.leaves.lo_text[i],
                h("br"),
                column.leaves.lo_text[i] === column.leaves.hi_text[i]
                  ? ""
                  : `${slim ? "" : "to "}${column.leaves.hi_text[i]}`,
              ];
    put(
      box,
      h("span", { class: "sr" }, leafLabel(state, i)),
      h(
        "span",
        { class: "in", "aria-hidden": "true" },
        l.dead_bins[i] ? deadMarks(l.dead_bins[i], at.h) : null,
        h(
          "span",
          { class: "t" },
          fresh
            ? h("span", { class: `tag ${state.commit?.split ? "repl" : "add"}` }, freshWord(state))
            : died
              ? h("span", { class: "tag dead" }, at.w > 124 ? `+${num(died)} dead` : `+${num(died)}`)
              : at.w > 96
                ? h(
                    "span",
                    {},
                    num(live(tree, i)),
                    l.dead[i] && at.w > 150
                      ? h("span", { class: "rust" }, ` · ${num(l.dead[i])} dead`)
                      : null,
                  )
                : null,
          b(at.w < 68 ? num(i + 1) : leafName(i)),
          l.kind[i] === "deletes" && at.w > 130 ? " deletes" : "",
        ),
        h("span", { class: "r" }, lines),
        h(
          "span",
          { class: "track" },
          h("i", { css: { left: `${a * 100}%`, width: `${(z - a) * 100}%` } }),
          bands.map(([x, y]) =>
            h("u", {
              css: {
                left: `calc(${x * 100}% - 1px)`,
                width: `${(y - x) * 100}%`,
                opacity: y - x > 0.12 ? ".45" : "1",
              },
            }),
          ),
        ),
      ),
    );
  }

  beams(places, bands, W) {
    const room = W - gutter;
    for (const [x, y] of bands)
      this.host.prepend(
        h("i", {
          class: "beam",
          css: { left: `${gutter + x * room - 1}px`, width: `${(y - x) * room + 2}px` },
        }),
      );
    const step = Math.max(1, Math.ceil((14 * places.length) / Math.max(1, this.host.clientHeight)));
    places.forEach((at, i) => {
      if (i % step === 0)
        this.host.append(h("span", { class: "glab", css: { top: `${at.y + at.h / 2 - 7}px` } }, num(i + 1)));
    });
  }

  roam(event, id) {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 8, ArrowUp: -8 }[event.key];
    const end = { Home: 0, End: this.order.length - 1 }[event.key];
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    const to = end ?? Math.min(this.order.length - 1, Math.max(0, this.order.indexOf(id) + step));
    this.known.forEach((box) => {
      box.tabIndex = -1;
    });
    const box = this.known.get(this.order[to]);
    box.tabIndex = 0;
    box.focus();
  }

  focus(id) {
    this.known.get(id)?.focus();
  }

  clear() {
    this.known.clear();
    put(this.host);
  }
}
