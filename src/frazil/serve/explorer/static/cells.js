// Rows of values as a table. Values come as text; null is not the text "null".

import { h, sheet } from "./dom.js";

export const value = (text) =>
  text === null || text === undefined
    ? h("span", { class: "null" }, "null")
    : h("span", { class: "cut", title: text.length > 30 ? text : null }, text);

const NUMBER = /^(tinyint|smallint|u?int|integer|bigint|hugeint|long|float|double|real|decimal|u?int\d+)/i;
export const numeric = (type) => NUMBER.test(type);

export function rowsTable(columns, rows, label) {
  return sheet(
    columns.map((c) =>
      h(
        "th",
        { scope: "col", class: numeric(c.type) ? "n" : null },
        c.name,
        h("span", { class: "ty" }, c.type),
      ),
    ),
    rows.map((row) =>
      h(
        "tr",
        {},
        row.map((cell, i) => h("td", { class: numeric(columns[i].type) ? "n" : null }, value(cell))),
      ),
    ),
    { label: label, kind: "values", tall: true },
  );
}
