// A sample of the rows, with a filter; and what commits changed, row by row.

import { aborted } from "../api.js";
import { numeric, rowsTable, value } from "../cells.js";
import { commitsOf } from "../commits.js";
import { b, button, h, put, sheet, trouble, waiting } from "../dom.js";
import { FilterBox } from "../tree/filter.js";
import { count, debounce, num, when } from "../words.js";

export async function mount(host, page) {
  const [overview, commits] = await Promise.all([page.overview(), commitsOf(page.api)]);
  const view = new RowsView(host, page, overview, commits);
  view.show();
  return view;
}

class RowsView {
  constructor(host, page, overview, commits) {
    this.host = host;
    this.page = page;
    this.overview = overview;
    this.commits = commits;
    Object.assign(this, this.from(page.params));
    page.tableFacts(overview);
  }

  from(p) {
    return {
      where: p.where ?? "",
      snapshot: p.snapshot ?? "",
      tab: p.show === "changes" ? "changes" : "sample",
      a: p.from ?? "",
      z: p.to ?? "",
      limit: 50,
    };
  }

  show() {
    const tab = (id, label) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(this.tab === id),
          onclick: () => {
            this.tab = id;
            this.show();
          },
        },
        label,
      );
    this.body = h("div", { "aria-live": "polite" });
    this.lead = h("p", { class: "lead" });
    const later = debounce(200, () => this.load());
    this.filter = new FilterBox({
      columns: () => this.overview.columns,
      complete: (where, at) => this.page.api.get("complete", { where, at }),
      value: this.where,
      placeholder: "a filter on any column",
      onchange: (text) => {
        this.where = text;
        later();
      },
    });
    put(
      this.host,
      h(
        "div",
        { class: "sheet wide" },
        this.lead,
        h(
          "div",
          { class: "bar" },
          h(
            "div",
            { class: "seg", role: "group", "aria-label": "What to show" },
            tab("sample", "Sample"),
            tab("changes", "Changes"),
          ),
          this.tab === "changes" ? this.spans() : this.moments(),
        ),
        this.tab === "sample" ? this.filter.element : null,
        h("div", { class: "card" }, this.body),
      ),
    );
    this.load();
  }

  choices(chosen, label, onchange, first) {
    const { commits: c } = this,
      pick = h(
        "select",
        { class: "pick", onchange: () => onchange(pick.value) },
        first,
        c.refs.map((r) => h("option", { value: r.name }, r.kind === "tag" ? `tag ${r.name}` : r.name)),
        c.id
          .map((id, i) => [id, i])
          .reverse()
          .slice(0, 300)
          .map(([id, i]) => h("option", { value: id }, `commit ${num(i + 1)}, ${when(c.time[i])}`)),
      );
    pick.value = chosen;
    if (pick.selectedIndex < 0) {
      pick.prepend(h("option", { value: chosen }, `snapshot ${chosen}`));
      pick.value = chosen;
    }
    return h("label", { class: "inline" }, label, pick);
  }

  moments() {
    return this.choices(
      this.snapshot,
      "as of",
      (v) => {
        this.snapshot = v;
        this.load();
      },
      h("option", { value: "" }, "the latest commit"),
    );
  }

  spans() {
    return [
      this.choices(
        this.a,
        "from",
        (v) => {
          this.a = v;
          this.load();
        },
        h("option", { value: "" }, "the commit before"),
      ),
      this.choices(
        this.z,
        "to",
        (v) => {
          this.z = v;
          this.load();
        },
        h("option", { value: "" }, "the latest commit"),
      ),
    ];
  }

  save() {
    this.page.save(
      this.tab === "changes"
        ? { show: "changes", from: this.a, to: this.z, snapshot: this.snapshot }
        : { where: this.where, snapshot: this.snapshot },
    );
  }

  async load() {
    this.abort?.abort();
    const mine = (this.abort = new AbortController());
    this.save();
    if (!this.body.childElementCount) put(this.body, waiting("Reading rows"));
    try {
      await (this.tab === "changes" ? this.changes(mine.signal) : this.sample(mine.signal));
    } catch (error) {
      if (!aborted(error)) put(this.body, trouble(error));
    }
  }

  async sample(signal) {
    const d = await this.page.api.get(
      "rows",
      { snapshot: this.snapshot, where: this.where, limit: this.limit },
      signal,
    );
    this.filter.mark(d.error);
    if (d.error) {
      put(this.lead, b("This filter cannot be read yet."));
      return;
    }
    put(
      this.lead,
      d.rows.length
        ? [
            b(d.truncated ? `The first ${num(d.rows.length)} rows` : count(d.rows.length, "row")),
            this.where.trim() ? " that match" : "",
            `, read in ${d.ms < 10 ? d.ms.toFixed(1) : num(Math.round(d.ms))} ms.`,
          ]
        : this.where.trim()
          ? "No row matches."
          : "The table is empty.",
    );
    put(
      this.body,
      d.rows.length ? rowsTable(d.columns, d.rows, "Rows") : h("p", { class: "empty" }, "No rows."),
      d.truncated && this.limit < 500
        ? h(
            "p",
            { class: "more" },
            button(() => {
              this.limit = 500;
              this.load();
            }, "Show 500 rows"),
          )
        : null,
    );
  }

  async changes(signal) {
    const d = await this.page.api.get("diff", { from: this.a, to: this.z, limit: 200 }, signal);
    const times = (kind) => d.kind.filter((x) => x === kind).length,
      n = d.kind.length;
    put(
      this.lead,
      n
        ? [
            b(`${d.truncated ? "The first " : ""}${count(n, "change")}`),
            `: ${[
              ["insert", "inserted"],
              ["update", "updated"],
              ["delete", "deleted"],
            ]
              .filter(([k]) => times(k))
              .map(([k, w]) => `${num(times(k))} ${w}`)
              .join(", ")}.`,
          ]
        : "No row changed between these commits.",
    );
    put(
      this.body,
      n
        ? sheet(
            [
              h("th", { scope: "col" }, h("span", { class: "sr" }, "Kind")),
              d.columns.map((c) =>
                h(
                  "th",
                  { scope: "col", class: numeric(c.type) ? "n" : null },
                  c.name,
                  h("span", { class: "ty" }, c.type),
                ),
              ),
            ],
            d.kind.map((kind, i) => this.change(d, kind, i)),
            { label: "Changes", caption: "Changed rows", kind: "values diff", tall: true },
          )
        : h("p", { class: "empty" }, "Nothing to show."),
    );
  }

  change(d, kind, i) {
    const sign = { insert: "+", delete: "−", update: "~" }[kind],
      changed = new Set(d.changed?.[i] ?? []),
      before = d.before[i],
      after = d.after[i];
    const cells = (row, old) =>
      d.columns.map((c, k) =>
        h(
          "td",
          { class: numeric(c.type) ? "n" : null },
          kind === "update" && changed.has(k) && old && row !== old
            ? [h("del", {}, value(old[k])), " ", h("ins", {}, value(row[k]))]
            : value(row?.[k]),
        ),
      );
    return h(
      "tr",
      { class: kind },
      h("td", { class: "sign" }, h("span", { "aria-label": kind }, sign)),
      cells(after ?? before, before),
    );
  }

  async changed() {
    this.overview = await this.page.overview(true);
    this.commits = await commitsOf(this.page.api);
    this.page.tableFacts(this.overview);
    if (!this.snapshot && !this.z) this.show();
  }

  update(params) {
    Object.assign(this, this.from(params));
    this.show();
  }
  leave() {
    this.abort?.abort();
  }
}
