// SQL with colours: a text field over a drawing of the same text. The field holds the text alone.

import { h, put } from "./dom.js";

const WORDS = new Set(
  (
    "ALL ALTER ANALYZE AND ANTI ANY AS ASC ASOF BEGIN BETWEEN BY CASE CAST COMMIT CREATE CROSS DELETE DESC " +
    "DESCRIBE DISTINCT DROP ELSE END EXCEPT EXCLUDE EXISTS EXPLAIN FALSE FILTER FIRST FOR FROM FULL GROUP " +
    "HAVING ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAST LATERAL LEFT LIKE LIMIT MATCHED MERGE " +
    "NOT NULL NULLS OF OFFSET ON OR ORDER OUTER OVER PARTITION PIVOT QUALIFY RECURSIVE REPLACE RETURNING RIGHT " +
    "ROLLBACK SELECT SEMI SET SHOW TABLE THEN TIMESTAMP TRUE UNION UNNEST UNPIVOT UPDATE USE USING VALUES " +
    "VERSION VIEW WHEN WHERE WINDOW WITH"
  ).split(" "),
);
const PARTS = new RegExp(
  [
    /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))/, // a comment
    /('(?:[^']|'')*'?)/, // a text
    /("(?:[^"]|"")*"?)/, // a name in quotes
    /(\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)/, // a number
    /([A-Za-z_]\w*)/, // a word
    /[\s\S]/,
  ]
    .map((part) => part.source)
    .join("|"),
  "gi",
);

/** The text as elements: comments, texts, names in quotes, numbers and words have a class each. */
export function coloured(text) {
  const parts = [];
  for (const [part, comment, string, name, number, word] of text.matchAll(PARTS)) {
    const kind = comment
      ? "c"
      : string
        ? "s"
        : name
          ? "q"
          : number
            ? "n"
            : word && WORDS.has(word.toUpperCase())
              ? "k"
              : null;
    if (kind) parts.push(h("span", { class: `sq-${kind}` }, part));
    else if (typeof parts.at(-1) === "string") parts[parts.length - 1] += part;
    else parts.push(part);
  }
  return parts;
}

/** A text that only shows. */
export const shownSql = (text) =>
  h("pre", { class: "sqltext", tabindex: 0, role: "region", "aria-label": "SQL" }, coloured(text));

export class SqlField {
  /** @param {{value: string, onrun: () => void, onchange: () => void}} given */
  constructor({ value, onrun, onchange }) {
    this.input = h("textarea", {
      id: "sql",
      spellcheck: "false",
      autocapitalize: "off",
      rows: 6,
      "aria-describedby": "sql-hint",
      oninput: () => {
        this.draw();
        onchange();
      },
      onscroll: () => this.follow(),
      onkeydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          onrun();
        }
      },
    });
    this.drawing = h("pre", { class: "sqltext", "aria-hidden": "true" });
    this.element = h("div", { class: "sqlfield" }, this.drawing, this.input);
    this.text = value;
  }

  get text() {
    return this.input.value;
  }

  set text(text) {
    this.input.value = text;
    this.draw();
  }

  draw() {
    // A last line break needs something after it to be drawn.
    put(this.drawing, coloured(this.input.value), "\n");
    this.follow();
  }

  follow() {
    this.drawing.scrollTop = this.input.scrollTop;
    this.drawing.scrollLeft = this.input.scrollLeft;
  }
}
