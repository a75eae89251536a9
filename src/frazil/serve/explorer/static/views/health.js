// What analyze finds and advises, with a button each; where the space goes; sizes and skew.

import { act, askAge } from "../dialogs.js";
import { b, button, card, cardHead, h, icon, put, trouble, waiting } from "../dom.js";
import { bars, histogram, stack } from "../plots.js";
import { count, num, size } from "../words.js";

export async function mount(host, page) {
  const view = new HealthView(host, page, await page.overview());
  await view.draw();
  return view;
}

const words = (name) => {
  const text = name.replaceAll("_", " ").replace(/ bytes$/, " size");
  return text.charAt(0).toUpperCase() + text.slice(1);
};
const shown = (name, value) =>
  typeof value === "number"
    ? /bytes/.test(name)
      ? size(value)
      : Number.isInteger(value)
        ? num(value)
        : value.toFixed(value < 10 ? 2 : 1)
    : typeof value === "boolean"
      ? value
        ? "yes"
        : "no"
      : String(value ?? "–");

const CARE = [
  ["compact", "Compact data files", "Rewrites small files and files with many deleted rows."],
  ["compact_metadata", "Compact metadata", "Folds leaves that are small or mostly dead."],
  ["rewrite_manifests", "Rewrite leaves", "Rewrites every leaf, clustered anew."],
  ["expire_snapshots", "Expire snapshots", "Drops old history and the files that only it needs."],
  ["remove_orphan_files", "Remove orphan files", "Deletes files that no snapshot knows."],
];

class HealthView {
  constructor(host, page, overview) {
    this.host = host;
    this.page = page;
    this.overview = overview;
  }

  async draw() {
    this.page.tableFacts(this.overview);
    this.lead = h("p", { class: "lead", "aria-live": "polite" });
    this.advice = h("div", { class: "pile" }, waiting("Looking at the table"));
    this.numbers = card("Numbers", waiting("Counting"));
    this.space = card("Space", waiting("Adding up files"));
    this.sizes = card("Data files by size", waiting("Adding up files"));
    this.parts = card("Largest partitions", waiting("Adding up files"));
    put(
      this.host,
      h(
        "div",
        { class: "sheet" },
        this.lead,
        this.advice,
        this.space,
        h("div", { class: "cols2" }, this.sizes, this.parts),
        this.care(),
        this.numbers,
      ),
    );
    await Promise.all([this.loadHealth(), this.loadSpace(false)]);
  }

  care() {
    if (this.page.session.read_only) return null;
    return card(
      "Maintenance",
      h(
        "ul",
        { class: "care" },
        CARE.map(([action, label, does]) =>
          h(
            "li",
            {},
            h("div", {}, b(label), h("p", { class: "note" }, does)),
            h(
              "button",
              {
                class: "btn",
                type: "button",
                "aria-label": `Preview: ${label}`,
                onclick: () => this.run(action, {}, label),
              },
              "Preview…",
            ),
          ),
        ),
      ),
    );
  }

  async loadHealth() {
    try {
      const d = await this.page.api.get("health");
      put(
        this.lead,
        d.advice.length
          ? [
              b(`${count(d.advice.length, "thing")} to do`),
              ". Each button shows what will happen before it does anything.",
            ]
          : [b("This table is healthy."), " Nothing needs to be done."],
      );
      put(
        this.advice,
        d.advice.map((a) =>
          h(
            "div",
            { class: "card tip-card" },
            icon("warn"),
            h("p", {}, a.problem),
            a.action && !this.page.session.read_only
              ? h(
                  "button",
                  {
                    class: "btn main",
                    type: "button",
                    onclick: () => this.run(a.action, a.params ?? {}, a.label),
                  },
                  `${a.label}…`,
                )
              : null,
          ),
        ),
      );
      const flat = Object.entries(d.numbers).filter(([, v]) => v !== null && typeof v !== "object");
      put(
        this.numbers,
        h("h2", {}, "Numbers"),
        h(
          "dl",
          { class: "tiles" },
          flat.map(([k, v]) => h("div", {}, h("dt", {}, words(k)), h("dd", {}, shown(k, v)))),
        ),
      );
    } catch (error) {
      put(this.advice, trouble(error));
      put(this.numbers);
    }
  }

  async loadSpace(orphans) {
    try {
      const d = await this.page.api.get("space", { orphans: orphans ? 1 : 0 });
      const parts = [
        { label: "Live data", value: d.live.data, kind: "s-data", note: count(d.live.files, "file") },
        { label: "Live metadata", value: d.live.metadata, kind: "s-meta" },
        { label: "Deletion vectors", value: d.live.vectors, kind: "s-vec" },
        {
          label: "History",
          value: d.history.data + d.history.metadata,
          kind: "s-past",
          note: d.history.files
            ? count(d.history.files, "file")
            : count(d.history.snapshots ?? 0, "snapshot"),
        },
        ...(d.orphans
          ? [
              {
                label: "Orphans",
                value: d.orphans.bytes,
                kind: "s-orph",
                note: count(d.orphans.files, "file"),
              },
            ]
          : []),
      ];
      const may = !this.page.session.read_only;
      put(
        this.space,
        cardHead(
          "Space",
          h("span", { class: "hint" }, size(parts.reduce((a, p) => a + p.value, 0))),
          h("span", { class: "grow" }),
          d.orphans
            ? d.orphans.files && may
              ? button(() => this.run("remove_orphan_files", {}, "Remove orphan files"), "Remove orphans…")
              : null
            : h(
                "button",
                { class: "btn", type: "button", id: "orphans", onclick: () => this.loadSpace(true) },
                "Look for orphans",
              ),
          may && (d.history.snapshots ?? d.history.files) > 1
            ? button(() => this.run("expire_snapshots", {}, "Expire snapshots"), "Expire snapshots…")
            : null,
        ),
        h("div", { class: "body" }, stack(parts)),
      );
      put(this.sizes, h("h2", {}, "Data files by size"), h("div", { class: "body" }, histogram(d.sizes)));
      const p = d.partitions,
        rows = p.names.slice(0, 12).map((name, i) => ({
          label: name || "(whole table)",
          value: p.bytes[i],
          text: `${size(p.bytes[i])} · ${count(p.files[i], "file")}`,
        }));
      const hidden = p.names.length - rows.length + (p.others?.n ?? 0);
      put(
        this.parts,
        h(
          "h2",
          {},
          "Largest partitions",
          d.skew ? h("span", { class: "hint" }, `largest is ${d.skew.toFixed(1)} × the median`) : null,
        ),
        h(
          "div",
          { class: "body" },
          rows.length
            ? bars(rows, "Largest partitions")
            : h("p", { class: "empty" }, d.live.files ? "This table is not partitioned." : "No data files."),
          hidden > 0 ? h("p", { class: "note" }, `and ${count(hidden, "more partition")}`) : null,
        ),
      );
    } catch (error) {
      put(this.space, h("h2", {}, "Space"), h("div", { class: "body" }, trouble(error)));
      put(this.sizes);
      put(this.parts);
    }
  }

  async run(action, params, label) {
    const done = await act(this.page.api, action, params, {
      title: label,
      verb: label,
      fields: askAge(action, this.overview),
    });
    if (done) await this.changed();
  }

  async changed() {
    this.overview = await this.page.overview(true);
    await this.draw();
  }
}
