// A view of the catalog: the SQL that it stands for, its columns, and its first rows.

import { post, viewOf } from "../api.js";
import { rowsTable } from "../cells.js";
import { b, card, code, grid, h, icon, put, trouble, waiting } from "../dom.js";
import { shownSql } from "../sql_text.js";
import { ago, count } from "../words.js";

const ROWS = 50;

export async function mount(host, page) {
  const view = await viewOf(page.levels, page.name);
  page.facts([["columns", String(view.columns.length)]]);
  const result = h("div", { class: "card" });
  const name = [...page.levels, page.name].map((part) => `"${part.replaceAll('"', '""')}"`).join(".");

  async function run() {
    put(result, h("h2", {}, "Rows"), waiting("Running the query"));
    try {
      const d = await post("/sql", {
        sql: `SELECT * FROM ${name} LIMIT ${ROWS}`,
        limit: ROWS,
        table: [...page.levels, page.name],
      });
      put(
        result,
        h("h2", {}, "Rows"),
        d.ok
          ? d.rows.length
            ? rowsTable(d.columns, d.rows, "Rows")
            : h("p", { class: "empty" }, "No rows.")
          : h(
              "div",
              { class: "body" },
              trouble({ title: "The view cannot be read", message: d.error.message }),
            ),
      );
    } catch (error) {
      put(result, h("h2", {}, "Rows"), h("div", { class: "body" }, trouble(error)));
    }
  }

  put(
    result,
    h("h2", {}, "Rows"),
    h(
      "div",
      { class: "body" },
      h("button", { class: "btn main", type: "button", onclick: run }, icon("play"), `Show ${ROWS} rows`),
    ),
  );
  put(
    host,
    h(
      "div",
      { class: "sheet" },
      h(
        "p",
        { class: "lead" },
        b("A view"),
        ` of ${count(view.columns.length, "column")}`,
        view.namespace ? [", whose names are looked up in ", code(view.namespace)] : "",
        view.changed ? `. Last changed ${ago(view.changed)}` : "",
        view.versions > 1 ? `, ${count(view.versions, "version")}.` : ".",
      ),
      card(
        [
          "Query",
          view.dialect && view.dialect !== "duckdb" ? h("span", { class: "tag plain" }, view.dialect) : null,
        ],
        shownSql(view.sql),
      ),
      card(
        "Columns",
        grid(
          [["Column", "m"], ["Type", "m"], ["Comment"]],
          view.columns.map((c) => [c.name, c.type, c.doc ?? h("span", { class: "dim" }, "–")]),
          { label: "Columns" },
        ),
      ),
      result,
    ),
  );
  return {};
}
