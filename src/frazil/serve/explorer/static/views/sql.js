// A box for SQL: results on one side, on the other the plan, which follows the text.

import { aborted, post } from "../api.js";
import { rowsTable } from "../cells.js";
import { b, button, cardHead, h, icon, put, trouble, waiting } from "../dom.js";
import { SqlField } from "../sql_text.js";
import { count, debounce, num } from "../words.js";

const PART = /^[A-Za-z_]\w*$/;
const SHOWN_ROWS = 500,
  DOWNLOADED_ROWS = 5000,
  PLAN_AFTER_MS = 500,
  KEPT = 30,
  HISTORY = "frazil-sql-history";
const quoted = (name) => (PART.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

export async function mount(host, page) {
  const view = new SqlView(host, page, await page.overview());
  view.draw();
  return view;
}

/** Texts that were run in this browser, newest first. */
const past = {
  all() {
    try {
      const kept = JSON.parse(localStorage.getItem(HISTORY) ?? "[]");
      return Array.isArray(kept) ? kept.filter((text) => typeof text === "string") : [];
    } catch {
      return [];
    }
  },
  add(text) {
    try {
      const others = past.all().filter((known) => known !== text);
      localStorage.setItem(HISTORY, JSON.stringify([text, ...others].slice(0, KEPT)));
    } catch {
      /* private windows keep nothing */
    }
  },
};

class SqlView {
  constructor(host, page, overview) {
    this.host = host;
    this.page = page;
    this.overview = overview;
    this.table = [...page.levels, page.name].map(quoted).join(".");
    this.field = new SqlField({
      value: page.params.q ?? `SELECT *\nFROM ${this.table}\nLIMIT 20`,
      onrun: () => this.run(),
      onchange: debounce(PLAN_AFTER_MS, () => this.explain()),
    });
    page.tableFacts(overview);
  }

  examples() {
    const { columns } = this.overview,
      group =
        columns.find((c) => c.partition && !c.path.includes(".")) ??
        columns.find((c) => c.type === "string" && !c.path.includes("."));
    return [
      ["First rows", `SELECT *\nFROM ${this.table}\nLIMIT 20`],
      ["Count", `SELECT count(*) AS rows\nFROM ${this.table}`],
      ...(group
        ? [
            [
              `By ${group.path}`,
              `SELECT ${quoted(group.path)}, count(*) AS rows\nFROM ${this.table}\n` +
                "GROUP BY 1\nORDER BY 2 DESC\nLIMIT 20",
            ],
          ]
        : []),
    ];
  }

  draw() {
    this.button = h(
      "button",
      { class: "btn main", type: "button", onclick: () => (this.running ? this.stop() : this.run()) },
      icon("play"),
      "Run",
    );
    this.said = h("span", { class: "hint", role: "status" });
    this.past = h("select", {
      class: "pick",
      "aria-label": "Queries that were run in this browser",
      onchange: () => {
        if (this.past.value) this.take(past.all()[Number(this.past.value)]);
      },
    });
    this.listPast();
    this.result = h("div", { class: "card res", "aria-live": "polite" });
    this.plan = h("div", { class: "card res" });
    this.drawResult(h("p", { class: "empty" }, "Run a query to see its rows here."));
    this.drawPlan(h("p", { class: "empty" }, "How the query is executed, and what Frazil pruned for it."));
    put(
      this.host,
      h(
        "div",
        { class: "sheet wide" },
        h(
          "div",
          { class: "card sqlbox" },
          cardHead(
            h("label", { for: "sql" }, "SQL"),
            h(
              "div",
              { class: "chips" },
              this.examples().map(([label, text]) =>
                h(
                  "button",
                  {
                    class: "chip",
                    type: "button",
                    onclick: () => {
                      this.take(text);
                      this.run();
                    },
                  },
                  label,
                ),
              ),
            ),
            h("span", { class: "grow" }),
            this.past,
            h(
              "span",
              { class: "tag plain" },
              this.page.session.sql_writes ? "reads and writes" : "read-only",
            ),
          ),
          this.field.element,
          h(
            "div",
            { class: "sqlfoot" },
            this.button,
            h("span", { class: "hint", id: "sql-hint" }, "Ctrl+Enter runs it"),
            h("span", { class: "grow" }),
            this.said,
          ),
        ),
        h("div", { class: "cols2 sqlcols" }, this.result, this.plan),
      ),
    );
    // The text of a link is not even explained before its reader does something.
    if (!this.page.params.q) this.explain();
  }

  listPast() {
    const texts = past.all();
    this.past.hidden = !texts.length;
    put(
      this.past,
      h("option", { value: "" }, "History"),
      texts.map((text, i) => h("option", { value: i }, text.replaceAll(/\s+/g, " ").slice(0, 80))),
    );
  }

  take(text) {
    this.field.text = text;
    this.past.value = "";
    this.explain();
  }

  drawResult(...content) {
    put(this.result, h("h2", {}, "Result"), ...content);
  }

  drawPlan(...content) {
    put(this.plan, h("h2", {}, "Plan"), ...content);
  }

  ask(sql, options, signal) {
    const table = [...this.page.levels, this.page.name];
    return post("/sql", { sql, table, ...options }, signal);
  }

  /** The plan of the text as it stands. What cannot be read yet leaves the plan of before. */
  async explain() {
    const sql = this.field.text.trim();
    this.explaining?.abort();
    if (!sql) return;
    const mine = (this.explaining = new AbortController());
    try {
      const d = await this.ask(sql, { explain: true, run: false }, mine.signal);
      if (mine.signal.aborted) return;
      this.plan.classList.toggle("stale", !d.ok);
      if (d.ok) this.explained(d.explain);
    } catch (error) {
      if (!aborted(error)) this.plan.classList.add("stale");
    }
  }

  explained(parts) {
    this.plan.classList.remove("stale");
    this.drawPlan(
      parts?.length
        ? parts.map((e) => [
            h("h3", { class: "part" }, e.part === "engine" ? "DuckDB" : e.part),
            h(
              "pre",
              { class: "explain", tabindex: 0, role: "region", "aria-label": `Plan: ${e.part}` },
              e.plan,
            ),
          ])
        : h("p", { class: "empty" }, "This statement has no plan."),
    );
  }

  stop() {
    this.running?.abort();
  }

  async run() {
    const sql = this.field.text.trim();
    if (!sql || this.running) return;
    this.page.save({ q: sql });
    past.add(sql);
    this.listPast();
    const mine = (this.running = new AbortController());
    put(this.button, icon("close"), "Cancel");
    put(this.said, "Running");
    this.drawResult(waiting("Running the query"));
    try {
      const d = await this.ask(sql, { limit: SHOWN_ROWS, explain: true }, mine.signal);
      if (d.ok) this.answered(sql, d);
      else this.refused(d.error);
    } catch (error) {
      put(this.said, aborted(error) ? "Cancelled" : "");
      this.drawResult(
        aborted(error)
          ? h("p", { class: "empty" }, "The query was cancelled.")
          : h("div", { class: "body" }, trouble(error)),
      );
    } finally {
      this.running = null;
      put(this.button, icon("play"), "Run");
    }
  }

  refused(error) {
    put(this.said, "");
    const message = error.message + (error.hint ? `\n${error.hint}` : "");
    this.drawResult(h("div", { class: "body" }, trouble({ title: "The query was refused", message })));
  }

  answered(sql, d) {
    const time = `${d.ms < 10 ? d.ms.toFixed(1) : num(Math.round(d.ms))} ms`;
    put(this.said, `${d.message ?? count(d.rows.length, "row")} · ${time}`);
    put(
      this.result,
      cardHead(
        "Result",
        d.truncated ? h("span", { class: "hint" }, `the first ${num(d.rows.length)} rows`) : null,
        h("span", { class: "grow" }),
        d.columns?.length
          ? ["CSV", "JSON"].map((kind) => button(() => this.download(sql, d, kind), `Download ${kind}`))
          : null,
      ),
      d.columns?.length
        ? rowsTable(d.columns, d.rows, "Result")
        : h("p", { class: "empty" }, b(d.message ?? "Done.")),
    );
    this.explained(d.explain);
  }

  /** The rows as a file. Where more rows match than are shown, the query runs again for them. */
  async download(sql, shown, kind) {
    let d = shown;
    if (shown.truncated) {
      put(this.said, "Reading more rows");
      try {
        d = await this.ask(sql, { limit: DOWNLOADED_ROWS });
      } catch (error) {
        put(this.said, error.message);
        return;
      }
      if (!d.ok) return this.refused(d.error);
    }
    const text = kind === "CSV" ? csv(d) : json(d);
    const link = h("a", {
      href: URL.createObjectURL(new Blob([text], { type: kind === "CSV" ? "text/csv" : "application/json" })),
      download: `${this.page.name}.${kind.toLowerCase()}`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    put(
      this.said,
      `${count(d.rows.length, "row")} downloaded` +
        (d.truncated ? `, the most that a page gives; frazil sql --to writes all of them` : "") +
        (d.cut
          ? `. ${count(d.cut, "long value")} cut at 200 characters; frazil sql --to writes them whole`
          : ""),
    );
  }

  // A link fills the box. Only a click or a key of the reader runs what is in it.
  update(params) {
    if (params.q && params.q !== this.field.text.trim()) this.field.text = params.q;
  }

  leave() {
    this.explaining?.abort();
    this.running?.abort();
  }
}

const cell = (text) =>
  text === null ? "" : /[",\n\r]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text;

/** Null is an empty cell, an empty text a pair of quotes. */
const csv = ({ columns, rows }) =>
  [columns.map((c) => cell(c.name)), ...rows.map((row) => row.map(cell))]
    .map((line) => line.join(","))
    .join("\r\n") + "\r\n";

/** Values as the page has them: texts, so that no digit of a long number is lost. */
const json = ({ columns, rows }) =>
  JSON.stringify(
    rows.map((row) => Object.fromEntries(columns.map((c, i) => [c.name, row[i]]))),
    null,
    1,
  ) + "\n";
