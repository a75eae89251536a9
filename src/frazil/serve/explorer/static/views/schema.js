// Columns and how they came to be, partitions, sort order, and properties with their defaults.

import { b, card, cardHead, code, grid, h, put } from "../dom.js";
import { count, num, when } from "../words.js";

export async function mount(host, page) {
  const view = new SchemaView(host, page, await page.overview());
  view.draw();
  return view;
}

class SchemaView {
  constructor(host, page, overview) {
    this.host = host;
    this.page = page;
    this.o = overview;
    this.all = page.params.properties === "all";
    this.search = "";
  }

  draw() {
    const { o } = this;
    this.page.tableFacts(o);
    this.properties = h("div", { class: "card" });
    put(
      this.host,
      h(
        "div",
        { class: "sheet" },
        this.lead(),
        this.columns(),
        h(
          "div",
          { class: "cols2" },
          this.evolution(),
          h("div", { class: "pile" }, this.partitions(), this.order(), this.facts()),
        ),
        this.properties,
      ),
    );
    this.drawProperties();
  }

  lead() {
    const { o } = this,
      spec = o.specs.find((x) => x.current),
      set = o.properties.filter((p) => p.value !== null).length;
    return h(
      "p",
      { class: "lead" },
      b(count(o.columns.length, "column")),
      o.schemas.length > 1
        ? ` after ${count(o.schemas.length - 1, "schema change")}`
        : ", unchanged since the table was made",
      spec?.fields.length
        ? [", partitioned by ", spec.fields.map((f, i) => [i ? ", " : "", code(f.name)])]
        : ", not partitioned",
      `, ${count(set, "property", "properties")} set.`,
    );
  }

  columns() {
    return card(
      "Columns",
      grid(
        [
          ["#", "n"],
          ["Column", "m"],
          ["Type", "m"],
          ["Required", "opt"],
          ["Role"],
          ["Default", "opt"],
          ["Since", "opt"],
          ["Comment"],
        ],
        this.o.columns.map((c) => [
          num(c.id),
          c.path,
          c.type,
          c.required ? "required" : h("span", { class: "dim" }, "optional"),
          [
            c.identifier ? h("span", { class: "tag add" }, "identifier") : null,
            c.partition ? h("span", { class: "tag acc" }, "partition") : null,
            c.sort ? h("span", { class: "tag repl" }, "sort") : null,
            c.has_bounds ? null : h("span", { class: "tag plain" }, "no bounds"),
          ],
          c.default === null ? h("span", { class: "dim" }, "–") : h("span", { class: "col" }, c.default),
          `schema ${c.since}`,
          c.doc ?? h("span", { class: "dim" }, "–"),
        ]),
        { label: "Columns" },
      ),
    );
  }

  evolution() {
    const list = [...this.o.schemas].reverse();
    return card(
      "Evolution",
      h(
        "ol",
        { class: "steps" },
        list.map((sch) =>
          h(
            "li",
            { class: sch.current ? "now" : null },
            h(
              "div",
              { class: "st" },
              b(`Schema ${sch.id}`),
              sch.current ? h("span", { class: "tag add" }, "current") : null,
              h("span", { class: "dim" }, sch.time ? `${when(sch.time)} UTC` : "not used by a snapshot"),
              sch.first_snapshot
                ? h(
                    "a",
                    { class: "link", href: this.page.link("tree", { snapshot: sch.first_snapshot }) },
                    "its first tree",
                  )
                : null,
            ),
            sch.changes.length
              ? h(
                  "ul",
                  { class: "changes" },
                  sch.changes.map((x) => h("li", { class: x.kind }, x.text)),
                )
              : h("p", { class: "note" }, "The first schema."),
          ),
        ),
      ),
    );
  }

  partitions() {
    const specs = [...this.o.specs].sort((x, y) => y.current - x.current);
    return card(
      "Partitions",
      h(
        "div",
        { class: "body" },
        specs.map((spec) =>
          h(
            "div",
            { class: "spec" },
            h(
              "p",
              {},
              b(`Spec ${spec.id}`),
              " ",
              spec.current
                ? h("span", { class: "tag add" }, "current")
                : h("span", { class: "tag plain" }, "earlier"),
            ),
            spec.fields.length
              ? h(
                  "ul",
                  { class: "changes" },
                  spec.fields.map((f) =>
                    h(
                      "li",
                      {},
                      code(f.name),
                      f.transform === "identity"
                        ? [" = ", code(f.source)]
                        : [" = ", code(`${f.transform}(${f.source})`)],
                    ),
                  ),
                )
              : h("p", { class: "note" }, "Not partitioned."),
          ),
        ),
      ),
    );
  }

  order() {
    const orders = this.o.sort_orders.filter((x) => x.fields.length),
      now = orders.find((x) => x.current);
    return card(
      "Sort order",
      h(
        "div",
        { class: "body" },
        now
          ? h(
              "ol",
              { class: "changes" },
              now.fields.map((f) =>
                h(
                  "li",
                  {},
                  code(f.transform === "identity" ? f.source : `${f.transform}(${f.source})`),
                  ` ${f.direction === "desc" ? "descending" : "ascending"}, nulls ${f.nulls}`,
                ),
              ),
            )
          : h("p", { class: "note" }, "Unsorted."),
      ),
    );
  }

  facts() {
    const { o } = this;
    return card(
      "Table",
      h(
        "div",
        { class: "body" },
        h(
          "dl",
          { class: "kv" },
          [
            ["Location", o.location],
            ["UUID", o.uuid],
            ["Format version", num(o.format_version)],
            ["Changed", `${when(o.updated)} UTC`],
            ["Metadata version", num(o.version)],
          ].map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))),
        ),
      ),
    );
  }

  drawProperties() {
    const { o } = this,
      want = this.search.toLowerCase(),
      rows = o.properties.filter(
        (p) =>
          (this.all || p.value !== null) &&
          (p.name.toLowerCase().includes(want) || (p.doc ?? "").toLowerCase().includes(want)),
      );
    const toggle = (all, label) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(this.all === all),
          onclick: () => {
            this.all = all;
            this.page.save({ properties: all ? "all" : null });
            this.drawProperties();
          },
        },
        label,
      );
    const input = h("input", {
      type: "search",
      "aria-label": "Search properties",
      placeholder: "Search properties",
      oninput: () => {
        this.search = input.value;
        this.drawProperties();
        this.properties.querySelector("input").focus();
      },
    });
    input.value = this.search;
    put(
      this.properties,
      cardHead(
        "Properties",
        h(
          "div",
          { class: "seg", role: "group", "aria-label": "Which properties" },
          toggle(false, "Set"),
          toggle(true, "All"),
        ),
        h("span", { class: "grow" }),
        h("div", { class: "search small" }, input),
      ),
      rows.length
        ? grid(
            [["Property", "m"], ["Value", "m"], ["Default", "m opt"], ["Meaning"]],
            rows.map((p) => [
              p.name,
              p.value === null ? h("span", { class: "dim" }, "not set") : b(p.value),
              p.default ?? h("span", { class: "dim" }, "–"),
              p.doc || (p.known ? "" : h("span", { class: "dim" }, "not one of Frazil’s")),
            ]),
            { label: "Properties", kind: "top" },
          )
        : h(
            "p",
            { class: "empty" },
            this.all || want ? "No such property." : "None is set; every property has its default.",
          ),
    );
  }

  async changed() {
    this.o = await this.page.overview(true);
    this.draw();
  }
}
