// Every table: size, rows, commits per day and health; search; renewed when others commit.

import { aborted, get } from "../api.js";
import { b, card, grid, h, icon, put, trouble } from "../dom.js";
import { LEVELS, tableHash } from "../links.js";
import { sparkline } from "../plots.js";
import { ago, count, debounce, num, short, size, when } from "../words.js";

const PAGE = 200;

export async function mount(host, page) {
  const view = new CatalogView(host, page);
  await view.load();
  return view;
}

class CatalogView {
  constructor(host, page) {
    this.host = host;
    this.page = page;
    this.fresh = new Set();
    this.offset = 0;
    this.search = page.params.search ?? "";
    this.namespace = page.params.namespace ?? "";
    const again = debounce(120, () => {
      this.offset = 0;
      this.load();
    });
    this.input = h("input", {
      id: "search",
      type: "search",
      placeholder: "Search tables",
      "aria-label": "Search tables",
      oninput: () => {
        this.search = this.input.value;
        again();
      },
    });
    this.input.value = this.search;
    this.lead = h("p", { class: "lead", "aria-live": "polite" });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Namespaces" });
    this.body = h("div", { class: "pile" });
    put(
      host,
      h(
        "div",
        { class: "sheet" },
        h("h2", { class: "sr" }, "Tables"),
        this.lead,
        h("div", { class: "bar" }, h("div", { class: "search" }, icon("search"), this.input), this.chips),
        this.body,
      ),
    );
    page.facts([["catalog", page.session.catalog]]);
    this.onkey = (event) => {
      if (event.key === "/" && document.activeElement !== this.input) {
        event.preventDefault();
        this.input.focus();
      }
    };
    addEventListener("keydown", this.onkey);
  }

  async load() {
    this.abort?.abort();
    const mine = (this.abort = new AbortController());
    try {
      const found = await get(
        "/catalog",
        { search: this.search, namespace: this.namespace, limit: PAGE, offset: this.offset },
        mine.signal,
      );
      this.found = found;
      this.draw(found);
    } catch (error) {
      if (!aborted(error)) put(this.body, trouble(error));
    }
  }

  draw(found) {
    const t = found.tables,
      total = (values) => values.reduce((a, x) => a + (x ?? 0), 0),
      look = t.health.filter((x) => x === "look").length;
    this.page.save({ search: this.search, namespace: this.namespace });
    put(
      this.lead,
      found.total
        ? [
            b(count(found.total, "table")),
            this.search || this.namespace ? " found" : ` in ${count(found.namespaces.length, "namespace")}`,
            `: ${short(total(t.rows))} rows in ${count(total(t.files), "file")}, ${size(total(t.bytes))}. `,
            look ? [b(count(look, "table")), ` would gain from maintenance.`] : "",
          ]
        : this.search || this.namespace
          ? "No table matches."
          : "This catalog has no tables yet.",
    );
    const key = (levels) => levels.join(LEVELS);
    put(
      this.chips,
      found.namespaces.length > 1 || this.namespace
        ? [["", "All"], ...found.namespaces.map((n) => [key(n.levels), n.levels.join("."), n.tables])].map(
            ([id, label, n]) =>
              h(
                "button",
                {
                  class: "chip",
                  type: "button",
                  "aria-pressed": String(this.namespace === id),
                  onclick: () => {
                    this.namespace = id;
                    this.offset = 0;
                    this.load();
                  },
                },
                label,
                n === undefined ? null : h("span", { class: "cn" }, ` ${num(n)}`),
              ),
          )
        : null,
    );
    const rows = t.name.map((name, i) => {
      const full = [...t.levels[i], name].join("."),
        cells = [
          [
            h(
              "a",
              { class: "tname", href: tableHash(t.levels[i], name) },
              h("span", {}, `${t.levels[i].join(".")}.`),
              b(name),
            ),
            t.format_version[i] !== 4 ? h("span", { class: "tag plain" }, `v${t.format_version[i]}`) : null,
            t.error[i] ? h("span", { class: "sub rust" }, t.error[i]) : null,
          ],
          t.rows[i] === null ? "–" : short(t.rows[i]),
          t.files[i] === null ? "–" : num(t.files[i]),
          t.bytes[i] === null ? "–" : size(t.bytes[i]),
          [sparkline(t.commits_per_day[i])],
          t.updated[i] ? h("span", { title: `${when(t.updated[i])} UTC` }, ago(t.updated[i])) : "–",
          health(t.health[i], t.hint[i]),
        ];
      return Object.assign(cells, { kind: this.fresh.has(full) ? "fresh" : null });
    });
    put(
      this.body,
      rows.length
        ? h(
            "div",
            { class: "card" },
            grid(
              [
                ["Table"],
                ["Rows", "n"],
                ["Files", "n opt"],
                ["Size", "n"],
                ["Commits, 14 days", "opt"],
                ["Changed", "nowrap"],
                ["Health"],
              ],
              rows,
              { label: "Tables" },
            ),
          )
        : h("div", { class: "card" }, h("p", { class: "empty" }, "Nothing to show.")),
      found.views.name.length
        ? card(
            "Views",
            h(
              "ul",
              { class: "recent" },
              found.views.name.map((name, i) =>
                h(
                  "li",
                  {},
                  h(
                    "a",
                    { class: "tname", href: tableHash(found.views.levels[i], name, "view") },
                    h("span", {}, `${found.views.levels[i].join(".")}.`),
                    b(name),
                  ),
                ),
              ),
            ),
          )
        : null,
      found.total > PAGE
        ? h(
            "p",
            { class: "pager" },
            h(
              "button",
              {
                class: "btn",
                type: "button",
                disabled: this.offset === 0,
                onclick: () => {
                  this.offset -= PAGE;
                  this.load();
                },
              },
              "Previous",
            ),
            h(
              "button",
              {
                class: "btn",
                type: "button",
                disabled: this.offset + PAGE >= found.total,
                onclick: () => {
                  this.offset += PAGE;
                  this.load();
                },
              },
              "Next",
            ),
          )
        : null,
    );
  }

  async changed(news) {
    this.fresh = new Set(news.changed.map((t) => [...t.levels, t.name].join(".")));
    await this.load();
  }

  update(params) {
    this.search = this.input.value = params.search ?? "";
    this.namespace = params.namespace ?? "";
    this.load();
  }

  leave() {
    removeEventListener("keydown", this.onkey);
    this.abort?.abort();
  }
}

const health = (state, hint) =>
  state === "ok"
    ? h("span", { class: "well ok" }, icon("check"), "Healthy")
    : state === "look"
      ? h("span", { class: "well look" }, icon("warn"), h("span", {}, hint || "Look at it"))
      : h("span", { class: "dim", title: "Open the table's Health page to have it looked at." }, "–");
