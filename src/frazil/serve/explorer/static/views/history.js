// The commits as a graph: what each wrote, two of them compared, and refs with their actions.

import { commitsOf } from "../commits.js";
import { act } from "../dialogs.js";
import { b, button, cardHead, grid, h, icon, put, s, sheet, trouble, waiting } from "../dom.js";
import { kindOf, sentence } from "../tree/timeline.js";
import { count, num, short, size, when } from "../words.js";

const PAGE = 60;
const COLOUR = { append: "accent", delete: "dead", replace: "repl" };
const WANTED = {
  all: ["All", () => true],
  append: ["Appends", (c, i) => kindOf(c.operation[i]) === "append"],
  delete: ["Deletes", (c, i) => kindOf(c.operation[i]) === "delete"],
  replace: ["Rewrites", (c, i) => kindOf(c.operation[i]) === "replace"],
  adapts: ["Flushes, merges and splits", (c, i) => c.flushed[i] || c.merged[i] || c.split[i]],
};

export async function mount(host, page) {
  const [overview, commits] = await Promise.all([page.overview(), commitsOf(page.api)]);
  const view = new HistoryView(host, page, overview, commits);
  view.draw();
  return view;
}

const difference = (from, to) =>
  from === null || to === null
    ? null
    : from === to
      ? "the same number"
      : to > from
        ? `${short(to - from)} more`
        : `${short(from - to)} fewer`;

class HistoryView {
  constructor(host, page, overview, commits) {
    const p = page.params;
    this.host = host;
    this.page = page;
    this.overview = overview;
    this.commits = commits;
    this.kind = p.only ?? "all";
    this.shown = PAGE;
    this.open = p.commit ?? null;
    this.pair = p.compare ? p.compare.split("..") : [];
    this.details = new Map();
    page.tableFacts(overview);
  }

  draw() {
    const { commits: c } = this;
    this.rows = h("tbody", {});
    this.more = button(() => {
      this.shown += PAGE;
      this.list();
    });
    this.compared = h("div", { class: "compared", "aria-live": "polite" });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Which commits" });
    this.refs = h("div", { class: "card" });
    put(
      this.host,
      h(
        "div",
        { class: "sheet" },
        this.lead(c),
        this.refs,
        this.compared,
        h(
          "div",
          { class: "card" },
          cardHead(
            "Commits",
            this.chips,
            h("span", { class: "grow" }),
            h("span", { class: "hint" }, "Tick two commits to compare them"),
          ),
          sheet(
            [
              ["Branch", "g"],
              ["Commit"],
              ["Time (UTC)", "opt"],
              ["Operation", "opt"],
              ["What it did"],
              ["Leaves", "n opt"],
              ["Metadata", "n opt"],
              ["Compare", "n"],
            ].map(([t, k]) =>
              h("th", { scope: "col", class: k }, k === "g" ? h("span", { class: "sr" }, t) : t),
            ),
            this.rows,
            { label: "Commits", caption: "Commits, newest first", kind: "commits" },
          ),
          h("p", { class: "more" }, this.more),
        ),
      ),
    );
    this.refCard();
    this.list();
    this.compare();
  }

  lead(c) {
    const n = c.id.length,
      branches = c.refs.filter((r) => r.kind === "branch").length,
      adapts = c.flushed.filter((x) => x > 0).length;
    return h(
      "p",
      { class: "lead" },
      n
        ? [
            b(count(n, "commit")),
            ` on ${count(branches, "branch", "branches")}. Each wrote one root; `,
            adapts
              ? [b(num(adapts)), ` also moved entries from the root to a leaf.`]
              : "the root has not needed leaves of its own yet.",
          ]
        : "This table has no commits yet.",
    );
  }

  refCard() {
    const { commits: c } = this,
      may = !this.page.session.read_only;
    const rows = c.refs.map((r) => {
      const i = c.id.indexOf(r.snapshot);
      return [
        [h("span", { class: `ref first ${r.kind === "branch" ? "branch" : ""}` }, r.name)],
        r.kind === "tag" ? "Tag" : "Branch",
        i < 0
          ? "–"
          : h(
              "a",
              { class: "link", href: this.page.link("tree", { snapshot: r.name }) },
              `Commit ${num(i + 1)}`,
            ),
        i < 0 ? "" : when(c.time[i]),
        i < 0 ? "" : short(c.rows[i]),
        may
          ? h(
              "span",
              { class: "acts" },
              r.kind === "branch" && r.name !== "main"
                ? button(
                    () =>
                      this.run(
                        "fast_forward",
                        { branch: "main", to: r.name },
                        { title: `Fast-forward main to ${r.name}`, verb: "Fast-forward" },
                      ),
                    "Fast-forward main…",
                  )
                : null,
              r.kind === "tag"
                ? button(
                    () =>
                      this.run(
                        "rollback",
                        { to: r.name, branch: "main" },
                        { title: `Roll back to ${r.name}`, verb: "Roll back" },
                      ),
                    "Roll back…",
                  )
                : null,
              r.name !== "main"
                ? h(
                    "button",
                    {
                      class: "btn",
                      type: "button",
                      "aria-label": `Remove ${r.name}`,
                      onclick: () =>
                        this.run("drop_ref", { name: r.name }, { title: `Remove ${r.name}`, verb: "Remove" }),
                    },
                    "Remove…",
                  )
                : null,
            )
          : null,
      ];
    });
    put(
      this.refs,
      cardHead(
        "Branches and tags",
        h("span", { class: "grow" }),
        may && c.id.length
          ? [
              button(() => this.name("tag", "main"), "Tag the head…"),
              button(() => this.name("branch", "main"), "New branch…"),
            ]
          : null,
      ),
      grid(
        [["Name"], ["Kind", "opt"], ["At"], ["Time (UTC)", "opt nowrap"], ["Rows", "n opt"], ["", "n"]],
        rows,
        { label: "Branches and tags" },
      ),
    );
  }

  name(kind, at) {
    return this.run(
      kind,
      { at },
      {
        title: kind === "tag" ? "New tag" : "New branch",
        verb: kind === "tag" ? "Create tag" : "Create branch",
        fields: [{ name: "name", label: "Name" }],
      },
    );
  }

  async run(action, params, given) {
    const done = await act(this.page.api, action, params, given);
    if (done) await this.changed();
  }

  /** The graph's part in one row: lines of the branches that pass, and the commit's dot. */
  lane(i) {
    const { commits: c } = this,
      x = (lane) => 10 + Math.min(lane, 3) * 14,
      mine = c.lane[i],
      parts = [];
    c.lanes.forEach((_, lane) => {
      const [first, last] = this.spans[lane] ?? [];
      if (first === undefined) return;
      const from = lane ? (c.parent[first] === null ? first : c.id.indexOf(c.parent[first])) : first;
      if (i > last || i < from) return;
      if (lane && i === from && from !== first)
        parts.push(
          s("path", { d: `M${x(c.lane[from])} 18C${x(c.lane[from])} 4 ${x(lane)} 14 ${x(lane)} 0` }),
        );
      else
        parts.push(
          s("path", {
            d: `M${x(lane)} ${i === last ? 18 : -12}V${i !== first ? 60 : from === first ? 18 : 38}`,
          }),
        );
    });
    return s(
      "svg",
      { width: 60, height: 36, class: "graph", "aria-hidden": "true" },
      parts,
      s("circle", { cx: x(mine), cy: 18, r: 4.5, fill: `var(--${COLOUR[kindOf(c.operation[i])]})` }),
    );
  }

  list() {
    const { commits: c } = this,
      wanted = (WANTED[this.kind] ?? WANTED.all)[1],
      found = [];
    this.spans = c.lanes
      .map((_, lane) => [c.lane.indexOf(lane), c.lane.lastIndexOf(lane)])
      .map(([a, z]) => (a < 0 ? [] : [a, z]));
    for (let i = c.id.length - 1; i >= 0; i--) if (wanted(c, i)) found.push(i);
    const open = this.open ? found.indexOf(c.id.indexOf(this.open)) : -1;
    if (open >= this.shown) this.shown = open + 10;
    put(
      this.chips,
      Object.entries(WANTED).map(([id, [label]]) =>
        h(
          "button",
          {
            class: "chip",
            type: "button",
            "aria-pressed": String(this.kind === id),
            onclick: () => {
              this.kind = id;
              this.shown = PAGE;
              this.list();
              this.save();
            },
          },
          label,
        ),
      ),
    );
    put(
      this.rows,
      found.length
        ? found
            .slice(0, this.shown)
            .map((i) => [this.row(i), c.id[i] === this.open ? this.detailRow(i) : null])
        : h("tr", {}, h("td", { colspan: 8 }, h("p", { class: "empty" }, "No such commits."))),
    );
    this.more.hidden = found.length <= this.shown;
    put(this.more, `Show ${num(Math.min(PAGE, found.length - this.shown))} earlier commits`);
    if (open >= 0 && !this.scrolled) {
      this.scrolled = true;
      this.rows.querySelector(".detail")?.scrollIntoView({ block: "nearest" });
    }
  }

  row(i) {
    const { commits: c } = this,
      id = c.id[i],
      open = id === this.open,
      refs = c.refs.filter((r) => r.snapshot === id);
    const tick = h("input", {
      type: "checkbox",
      "aria-label": `Compare commit ${i + 1}`,
      onchange: () => this.choose(id, tick.checked),
    });
    tick.checked = this.pair.includes(id);
    return h(
      "tr",
      { class: open ? "open" : null },
      h("td", { class: "g" }, this.lane(i)),
      h(
        "td",
        {},
        h(
          "button",
          {
            class: "link",
            type: "button",
            "aria-expanded": String(open),
            "aria-label": `Commit ${i + 1}`,
            onclick: () => {
              this.open = open ? null : id;
              this.list();
              this.save();
            },
          },
          num(i + 1),
        ),
      ),
      h("td", { class: "opt nowrap dim" }, when(c.time[i])),
      h(
        "td",
        { class: "opt" },
        h("span", { class: `op ${kindOf(c.operation[i])}` }, icon(c.operation[i]), c.operation[i]),
      ),
      h(
        "td",
        {},
        h("span", { class: "told" }, sentence(c.text[i])),
        c.flushed[i] ? h("span", { class: "tag acc" }, "flush") : null,
        c.merged[i] ? h("span", { class: "tag repl" }, "merge") : null,
        c.split[i] ? h("span", { class: "tag repl" }, "split") : null,
        refs.map((r) => h("span", { class: `ref ${r.kind === "branch" ? "branch" : ""}` }, r.name)),
      ),
      h("td", { class: "n opt" }, c.leaves_written[i] || "–"),
      h("td", { class: "n opt" }, size(c.metadata_bytes[i])),
      h("td", { class: "n" }, tick),
    );
  }

  detailRow(i) {
    const id = this.commits.id[i],
      cell = h("td", { colspan: 8 }, waiting("Reading the commit"));
    const fill = (d) => put(cell, this.detail(d));
    if (this.details.has(id)) fill(this.details.get(id));
    else
      this.page.api.get("commit", { snapshot: id }).then(
        (d) => {
          this.details.set(id, d);
          fill(d);
        },
        (error) => put(cell, trouble(error)),
      );
    return h("tr", { class: "detail" }, cell);
  }

  detail(d) {
    const { commits: c } = this,
      may = !this.page.session.read_only,
      died = Object.values(d.died).reduce((a, x) => a + x, 0),
      parent = d.parent === null ? -1 : c.id.indexOf(d.parent);
    const wrote = [
      ["Root", `${d.wrote.root?.name ?? "–"}, ${size(d.wrote.root?.bytes)}`],
      [
        "Leaves",
        d.wrote.leaves.length
          ? d.wrote.leaves
              .map((l) => `${l.name} (${count(l.entries, "entry", "entries")}, ${size(l.bytes)})`)
              .join("; ")
          : "none",
      ],
      [
        "Data",
        d.wrote.data_files ? `${count(d.wrote.data_files, "file")}, ${size(d.wrote.data_bytes)}` : "none",
      ],
      [
        "Vectors",
        d.wrote.vectors
          ? `${count(d.wrote.vectors, "vector")} in ${count(d.wrote.puffin_files, "Puffin file")}`
          : "none",
      ],
      [
        "Retired",
        died
          ? `${count(died, "position")} in ${count(Object.keys(d.died).length, "leaf", "leaves")}`
          : "nothing",
      ],
      ["Parent", parent >= 0 ? `commit ${num(parent + 1)}` : "none"],
      ["Snapshot", d.id],
      ["Schema", `${d.schema_id}`],
    ];
    return h(
      "div",
      { class: "commit" },
      h(
        "div",
        { class: "acts" },
        h("a", { class: "btn main", href: this.page.link("tree", { snapshot: d.id }) }, "Show its tree"),
        h("a", { class: "btn", href: this.page.link("rows", { snapshot: d.id }) }, "Rows then"),
        h(
          "a",
          { class: "btn", href: this.page.link("rows", { from: d.parent ?? "", to: d.id, show: "changes" }) },
          "Its changes",
        ),
        may
          ? [
              button(
                () =>
                  this.run(
                    "rollback",
                    { to: d.id, branch: "main" },
                    { title: "Roll back", verb: "Roll back" },
                  ),
                "Roll back to here…",
              ),
              button(() => this.name("tag", d.id), "Tag…"),
              button(() => this.name("branch", d.id), "Branch…"),
            ]
          : null,
      ),
      h(
        "div",
        { class: "cols2" },
        h(
          "dl",
          { class: "kv" },
          wrote.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))),
        ),
        h(
          "details",
          { class: "summary", open: true },
          h("summary", {}, "Summary"),
          h(
            "dl",
            { class: "kv mono" },
            Object.entries(d.summary).map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, String(v)))),
          ),
        ),
      ),
    );
  }

  choose(id, on) {
    this.pair = on ? [...this.pair, id].slice(-2) : this.pair.filter((x) => x !== id);
    const at = (x) => this.commits.id.indexOf(x);
    this.pair.sort((x, y) => at(x) - at(y));
    this.list();
    this.save();
    this.compare();
  }

  async compare() {
    if (this.pair.length < 2) {
      put(this.compared);
      return;
    }
    const [from, to] = this.pair,
      no = (x) => this.commits.id.indexOf(x) + 1;
    put(this.compared, h("div", { class: "card" }, waiting("Comparing")));
    try {
      const d = await this.page.api.get("compare", { from, to });
      const cell = (label, value, note) =>
        h(
          "div",
          { class: "stat" },
          h("div", { class: "l" }, label),
          h("div", { class: "v" }, value),
          note ? h("div", { class: "note" }, note) : null,
        );
      put(
        this.compared,
        h(
          "div",
          { class: "card" },
          cardHead(
            `Commit ${num(no(from))} and commit ${num(no(to))}`,
            h(
              "span",
              { class: "hint" },
              d.behind === 0
                ? `${count(d.ahead, "commit")} apart`
                : d.ahead === 0
                  ? `${count(d.behind, "commit")} apart`
                  : `on different branches: ${num(d.ahead)} ahead, ${num(d.behind)} behind`,
            ),
            h("span", { class: "grow" }),
            button(() => {
              this.pair = [];
              this.list();
              this.save();
              this.compare();
            }, "Close"),
          ),
          h(
            "div",
            { class: "body" },
            h(
              "div",
              { class: "quad" },
              cell("Rows", `${short(d.rows.from)} → ${short(d.rows.to)}`, difference(d.rows.from, d.rows.to)),
              cell(
                "Data",
                `${size(d.files.bytes_from)} → ${size(d.files.bytes_to)}`,
                `${num(d.files.from ?? "?")} → ${num(d.files.to ?? "?")} files`,
              ),
              cell(
                "Files",
                `+${num(d.files.only_to)} −${num(d.files.only_from)}`,
                d.files.other_vector
                  ? `${count(d.files.other_vector, "file")} with other deletions`
                  : "no other deletions",
              ),
              cell(
                "In both",
                d.files.both === null ? "–" : count(d.files.both, "file"),
                `${count(d.leaves.both, "leaf", "leaves")} shared`,
              ),
            ),
            h("h3", {}, "Schema"),
            d.schema.length
              ? h(
                  "ul",
                  { class: "changes" },
                  d.schema.map((x) => h("li", {}, x.text)),
                )
              : h("p", { class: "note" }, "The same columns."),
            [
              ["Only in the earlier", d.examples.only_from],
              ["Only in the later", d.examples.only_to],
              ["With other deletions", d.examples.other_vector],
            ].map(([t, list]) =>
              list?.length
                ? h(
                    "details",
                    {},
                    h("summary", {}, `${t}: ${count(list.length, "file")} shown`),
                    h(
                      "ul",
                      { class: "paths" },
                      list.map((path) => h("li", {}, path)),
                    ),
                  )
                : null,
            ),
          ),
        ),
      );
    } catch (error) {
      put(this.compared, trouble(error));
    }
  }

  save() {
    this.page.save({
      only: this.kind === "all" ? null : this.kind,
      commit: this.open,
      compare: this.pair.length === 2 ? this.pair.join("..") : null,
    });
  }

  async changed() {
    this.overview = await this.page.overview(true);
    this.commits = await commitsOf(this.page.api);
    this.page.tableFacts(this.overview);
    this.draw();
  }

  update(params) {
    this.kind = params.only ?? "all";
    this.open = params.commit ?? null;
    this.pair = params.compare ? params.compare.split("..") : [];
    this.scrolled = false;
    this.draw();
  }
}
