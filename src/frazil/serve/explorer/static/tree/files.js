// The files that the root itself lists, as a table: all that a small table has.

import { aborted } from "../api.js";
import { button, grid, h, put, trouble, waiting } from "../dom.js";
import { count, num, size } from "../words.js";

const MOST = 50;
const tail = (path) => String(path).split("/").at(-1);

export class Files {
  /** @param {HTMLElement} host @param {{page: any, onfile: (id: string) => void, onall: () => void}} given */
  constructor(host, { page, onfile, onall }) {
    this.host = host;
    this.page = page;
    this.onfile = onfile;
    this.onall = onall;
  }

  still() {}

  async draw(state) {
    const asked = {
      id: "root",
      snapshot: state.tree.snapshot,
      where: state.error ? "" : state.where,
      column: state.column?.id,
      limit: MOST,
    };
    const key = JSON.stringify(asked);
    if (key === this.key) return;
    this.key = key;
    this.abort?.abort();
    this.abort = new AbortController();
    if (!this.host.childElementCount)
      put(this.host, h("div", { class: "leaf-list" }, waiting("Reading the root")));
    try {
      const root = await this.page.api.get("leaf", asked, this.abort.signal);
      this.paint(state, root);
    } catch (error) {
      if (aborted(error)) return;
      this.key = null;
      put(this.host, h("div", { class: "leaf-list" }, trouble(error)));
    }
  }

  paint(state, root) {
    const p = root.page,
      bounds = state.column ? p.bounds?.[state.column.id] : null;
    const range = (k) =>
      !bounds || bounds.lo[k] === null
        ? "–"
        : bounds.lo[k] === bounds.hi[k]
          ? bounds.lo[k]
          : `${bounds.lo[k]} … ${bounds.hi[k]}`;
    const rows = p.position
      .map((_, k) => k)
      .filter((k) => p.state[k] !== "dead" && p.kind[k] === "data")
      .map((k) =>
        Object.assign(
          [
            [
              h(
                "button",
                { class: "link cut", type: "button", title: p.file[k], onclick: () => this.onfile(p.id[k]) },
                tail(p.file[k]),
              ),
              p.partition?.[k] ? h("span", { class: "sub" }, p.partition[k]) : null,
            ],
            [
              num(p.rows[k] - (p.vector_rows[k] ?? 0)),
              p.vector_rows[k] ? h("span", { class: "sub rust" }, `${num(p.vector_rows[k])} deleted`) : null,
            ],
            size(p.bytes[k]),
            h("span", { class: "mono vals" }, range(k)),
            state.filtered
              ? p.match[k] === false
                ? h("span", { class: "tag plain" }, "skipped")
                : h("span", { class: "tag acc" }, "to read")
              : "–",
          ],
          { kind: state.filtered && p.match[k] === false ? "miss" : null },
        ),
      );
    put(
      this.host,
      h(
        "div",
        { class: "leaf-list" },
        grid(
          [["File"], ["Rows", "n"], ["Size", "n"], [state.column?.name ?? "Bounds"], ["This filter"]],
          rows,
          { label: "Files of the root" },
        ),
        root.total > p.position.length
          ? h("p", { class: "more" }, button(this.onall, `All ${count(root.total, "entry", "entries")}`))
          : h(
              "p",
              { class: "note pad" },
              "The root lists every file itself. When it grows, its entries move to leaves.",
            ),
      ),
    );
  }

  focus() {
    this.host.querySelector("button")?.focus();
  }

  clear() {
    this.abort?.abort();
    this.key = null;
    put(this.host);
  }
}
