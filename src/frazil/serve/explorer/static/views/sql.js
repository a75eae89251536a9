// A box for SQL: results on one side, the plan on the other.

import { post } from "../api.js";
import { rowsTable } from "../cells.js";
import { b, h, icon, put, trouble, waiting } from "../dom.js";
import { count, num } from "../words.js";

const PART = /^[A-Za-z_]\w*$/;
const quoted = (name) => (PART.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

export async function mount(host, page) {
  const view = new SqlView(host, page, await page.overview());
  view.draw();
  return view;
}

class SqlView {
  constructor(host, page, overview) {
    Object.assign(this, { host, page, overview });
    this.table = [...page.levels, page.name].map(quoted).join(".");
    this.text = page.params.q ?? `SELECT *\nFROM ${this.table}\nLIMIT 20`;
    page.tableFacts(overview);
  }

  examples() {
    const { columns } = this.overview, group = columns.find((c) => c.partition && !c.path.includes(".")) ?? columns.find((c) => c.type === "string" && !c.path.includes("."));
    return [["First rows", `SELECT *\nFROM ${this.table}\nLIMIT 20`], ["Count", `SELECT count(*) AS rows\nFROM ${this.table}`],
      ...(group ? [[`By ${group.path}`, `SELECT ${quoted(group.path)}, count(*) AS rows\nFROM ${this.table}\nGROUP BY 1\nORDER BY 2 DESC\nLIMIT 20`]] : [])];
  }

  draw() {
    this.input = h("textarea", { id: "sql", spellcheck: "false", autocapitalize: "off", rows: 6, "aria-describedby": "sql-hint", onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.run(); } } });
    this.input.value = this.text;
    this.button = h("button", { class: "btn main", type: "button", onclick: () => this.run() }, icon("play"), "Run");
    this.said = h("span", { class: "hint", role: "status" });
    this.result = h("div", { class: "card res" }, h("h2", {}, "Result"), h("p", { class: "empty" }, "Run a query to see its rows here."));
    this.plan = h("div", { class: "card res" }, h("h2", {}, "Plan"), h("p", { class: "empty" }, "How the query is executed, and what Frazil pruned for it."));
    put(this.host, h("div", { class: "sheet wide" },
      h("div", { class: "card sqlbox" }, h("div", { class: "chead" }, h("h2", {}, h("label", { for: "sql" }, "SQL")), h("div", { class: "chips" }, this.examples().map(([label, text]) => h("button", { class: "chip", type: "button", onclick: () => { this.input.value = text; this.run(); } }, label))), h("span", { class: "grow" }), h("span", { class: "tag plain" }, this.page.session.sql_writes ? "reads and writes" : "read-only")),
        this.input, h("div", { class: "sqlfoot" }, this.button, h("span", { class: "hint", id: "sql-hint" }, "Ctrl+Enter runs it"), h("span", { class: "grow" }), this.said)),
      h("div", { class: "cols2 sqlcols" }, this.result, this.plan)));
    if (this.page.params.q) this.run();
  }

  async run() {
    const sql = this.input.value.trim();
    if (!sql) return;
    this.page.save({ q: sql });
    this.button.disabled = true;
    put(this.said, "Running");
    put(this.result, h("h2", {}, "Result"), waiting("Running the query"));
    try {
      const d = await post("/sql", { sql, limit: 500, table: [...this.page.levels, this.page.name], explain: true });
      if (!d.ok) {
        put(this.said, "");
        put(this.result, h("h2", {}, "Result"), h("div", { class: "body" }, trouble({ title: "The query was refused", message: d.error.message + (d.error.hint ? `\n${d.error.hint}` : "") })));
        return;
      }
      put(this.said, `${d.message ?? count(d.rows.length, "row")} · ${d.ms < 10 ? d.ms.toFixed(1) : num(Math.round(d.ms))} ms`);
      put(this.result, h("h2", {}, "Result", d.truncated ? h("span", { class: "hint" }, `the first ${num(d.rows.length)} rows`) : null), d.columns?.length ? rowsTable(d.columns, d.rows, "Result") : h("p", { class: "empty" }, b(d.message ?? "Done.")));
      put(this.plan, h("h2", {}, "Plan"), d.explain?.length ? d.explain.map((e) => [h("h3", { class: "part" }, e.part === "engine" ? "DuckDB" : e.part), h("pre", { class: "explain", tabindex: 0, role: "region", "aria-label": `Plan: ${e.part}` }, e.plan)]) : h("p", { class: "empty" }, "This statement has no plan."));
    } catch (error) {
      put(this.said, "");
      put(this.result, h("h2", {}, "Result"), h("div", { class: "body" }, trouble(error)));
    } finally { this.button.disabled = false; }
  }

  update(params) { if (params.q && params.q !== this.input.value) { this.input.value = params.q; this.run(); } }
}
