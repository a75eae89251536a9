// A table at a glance: how much, how fresh, what is in its columns, its partitions, health, commits.

import { act, askAge } from "../dialogs.js";
import { b, button, card, cardHead, code, grid, h, icon, put, trouble, waiting } from "../dom.js";
import { bars, histogramOf, line, share } from "../plots.js";
import { ago, count, num, short, size, when } from "../words.js";

const COMMITS = 60,
  RECENT = 6,
  LARGEST = 8;

export async function mount(host, page) {
  const view = new OverviewView(host, page, await page.overview());
  await view.draw();
  return view;
}

class OverviewView {
  constructor(host, page, overview) {
    this.host = host;
    this.page = page;
    this.o = overview;
  }

  async draw() {
    this.page.tableFacts(this.o);
    const pending = (title, what) => card(title, waiting(what));
    this.numbers = h("dl", { class: "glance" });
    this.columns = pending("Columns", "Looking at the columns");
    this.partitions = pending("Largest partitions", "Adding up files");
    this.health = pending("Health", "Looking at the table");
    this.recent = pending("Recent commits", "Reading the history");
    put(
      this.host,
      h(
        "div",
        { class: "sheet" },
        this.lead(),
        this.numbers,
        this.columns,
        h(
          "div",
          { class: "cols2" },
          h("div", { class: "pile" }, this.health, this.recent),
          h("div", { class: "pile" }, this.partitions),
        ),
      ),
    );
    this.drawNumbers(null);
    await Promise.all([this.loadColumns(), this.loadCommits(), this.loadHealth(), this.loadPartitions()]);
  }

  lead() {
    const { o } = this,
      spec = o.specs.find((x) => x.current),
      order = o.sort_orders.find((x) => x.current && x.fields.length);
    if (!o.snapshot)
      return h(
        "p",
        { class: "lead" },
        b("This table is empty."),
        ` It has ${count(o.columns.length, "column")} and waits for its first rows.`,
      );
    const names = (fields) =>
      fields.map((f, i) => [
        i ? ", " : "",
        code(f.transform === "identity" ? f.source : `${f.transform}(${f.source})`),
      ]);
    return h(
      "p",
      { class: "lead" },
      b(o.rows === null ? "Rows" : count(o.rows, "row")),
      ` of ${count(o.columns.length, "column")} in ${count(o.files, "file")}`,
      spec?.fields.length ? [", partitioned by ", names(spec.fields)] : ", not partitioned",
      order ? [", sorted by ", names(order.fields)] : "",
      `. Last changed ${ago(o.updated)}.`,
    );
  }

  drawNumbers(commits) {
    const { o } = this;
    const cell = (label, value, note, picture) =>
      h("div", {}, h("dt", {}, label), h("dd", {}, b(value), note ? h("span", {}, note) : null, picture));
    const growth = (values, label) => (values && values.length > 2 ? line(values, label) : null);
    put(
      this.numbers,
      cell(
        "Rows",
        o.rows === null ? "unknown" : short(o.rows),
        null,
        growth(commits?.rows, "Rows after each of the last commits"),
      ),
      cell(
        "Size",
        size(o.bytes),
        o.files ? `${size(o.bytes / o.files)} per file` : null,
        growth(commits?.bytes, "Size after each of the last commits"),
      ),
      cell("Changed", ago(o.updated), `${when(o.updated)} UTC`),
      cell("Commits", num(o.commits), o.refs.length > 1 ? `${num(o.refs.length)} branches and tags` : null),
    );
  }

  async loadColumns() {
    try {
      const d = await this.page.api.get("columns");
      this.drawColumns(d);
    } catch (error) {
      put(this.columns, h("h2", {}, "Columns"), h("div", { class: "body" }, trouble(error)));
    }
  }

  drawColumns(d) {
    const { o } = this,
      told = new Map(d.columns.map((column) => [column.id, column]));
    const listed = o.columns.slice(0, 40);
    put(
      this.columns,
      cardHead(
        "Columns",
        h(
          "span",
          { class: "hint" },
          !o.snapshot
            ? ""
            : d.exact
              ? "counted from the rows"
              : "from the statistics in the root; deleted rows may be among them",
        ),
        h("span", { class: "grow" }),
        h("a", { class: "link", href: this.page.link("schema") }, "Schema and properties"),
      ),
      grid(
        [["Column"], ["Values"], ["Spread", "opt"], ["Nulls", "n"], ["Distinct", "n opt"]],
        listed.map((column) => {
          const t = told.get(column.id);
          return [
            [
              code(column.path),
              h("span", { class: "ty" }, column.type),
              column.partition ? h("span", { class: "tag acc" }, "partition") : null,
              column.sort ? h("span", { class: "tag repl" }, "sort") : null,
            ],
            range(t),
            t ? histogramOf(t, column.path) : null,
            t?.nulls === null || t?.nulls === undefined ? dash() : share(t.nulls, o.rows),
            t?.distinct === null || t?.distinct === undefined ? dash() : num(t.distinct),
          ];
        }),
        { label: "Columns", kind: "columns" },
      ),
      o.columns.length > listed.length
        ? h(
            "p",
            { class: "more" },
            h(
              "a",
              { class: "link", href: this.page.link("schema") },
              `${num(o.columns.length - listed.length)} more columns`,
            ),
          )
        : null,
    );
  }

  async loadCommits() {
    try {
      const c = await this.page.api.get("commits", { limit: COMMITS });
      this.drawNumbers(c);
      const last = c.id.length - 1;
      const rows = [];
      for (let i = last; i > last - RECENT && i >= 0; i--)
        rows.push(
          h(
            "li",
            {},
            h(
              "a",
              { class: "link", href: this.page.link("history", { commit: c.id[i] }) },
              `Commit ${num(c.first + i + 1)}`,
            ),
            h("span", { class: "told" }, `${c.operation[i]}: ${c.text[i]}`),
            h("span", { class: "dim", title: `${when(c.time[i])} UTC` }, ago(c.time[i])),
          ),
        );
      put(
        this.recent,
        cardHead(
          "Recent commits",
          h("span", { class: "grow" }),
          h("a", { class: "link", href: this.page.link("history") }, "History"),
        ),
        rows.length
          ? h("ul", { class: "recent" }, rows)
          : h("p", { class: "empty" }, "No commits yet. Append some rows and they appear here."),
      );
    } catch (error) {
      put(this.recent, h("h2", {}, "Recent commits"), h("div", { class: "body" }, trouble(error)));
    }
  }

  async loadHealth() {
    try {
      const d = await this.page.api.get("health"),
        may = !this.page.session.read_only;
      put(
        this.health,
        cardHead(
          "Health",
          h("span", { class: "grow" }),
          h("a", { class: "link", href: this.page.link("health") }, "Details"),
        ),
        d.advice.length
          ? h(
              "ul",
              { class: "recent" },
              d.advice.map((advice) =>
                h(
                  "li",
                  {},
                  h("span", { class: "well look" }, icon("warn")),
                  h("span", { class: "told" }, advice.problem),
                  advice.action && may ? button(() => this.run(advice), `${advice.label}…`) : null,
                ),
              ),
            )
          : h(
              "div",
              { class: "body" },
              h("p", { class: "well ok" }, icon("check"), "Healthy: nothing needs to be done."),
            ),
      );
    } catch (error) {
      put(this.health, h("h2", {}, "Health"), h("div", { class: "body" }, trouble(error)));
    }
  }

  async loadPartitions() {
    const isPartitioned = this.o.specs.some((spec) => spec.fields.length);
    this.partitions.hidden = !isPartitioned;
    if (!isPartitioned) return;
    try {
      const d = await this.page.api.get("space"),
        p = d.partitions;
      const rows = p.names.slice(0, LARGEST).map((name, i) => ({
        label: name || "(whole table)",
        value: p.bytes[i],
        text: `${size(p.bytes[i])} · ${count(p.files[i], "file")}`,
      }));
      put(
        this.partitions,
        h(
          "h2",
          {},
          "Largest partitions",
          p.total
            ? h(
                "span",
                { class: "hint" },
                `of ${num(p.total)}${d.skew ? `; the largest is ${d.skew.toFixed(1)} × the median` : ""}`,
              )
            : null,
        ),
        h(
          "div",
          { class: "body" },
          rows.length ? bars(rows, "Largest partitions") : h("p", { class: "empty" }, "No data files."),
        ),
      );
    } catch (error) {
      put(this.partitions, h("h2", {}, "Largest partitions"), h("div", { class: "body" }, trouble(error)));
    }
  }

  async run(advice) {
    const done = await act(this.page.api, advice.action, advice.params ?? {}, {
      title: advice.label,
      verb: advice.label,
      fields: askAge(advice.action, this.o),
    });
    if (done) await this.changed();
  }

  async changed() {
    this.o = await this.page.overview(true);
    await this.draw();
  }
}

const dash = () => h("span", { class: "dim" }, "–");

function range(t) {
  if (!t || (t.low === null && !t.values?.length)) return dash();
  if (t.values?.length && t.values.length + (t.others ? 1 : 0) <= 6 && !t.bins)
    return h("span", { class: "mono vals" }, t.values.map(([text]) => text || "(empty)").join(", "));
  return h("span", { class: "mono vals" }, t.low === t.high ? t.low : `${t.low ?? "?"} … ${t.high ?? "?"}`);
}
