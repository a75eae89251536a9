// The shell: which page is shown, its header, and news from the server. Addresses:
//   #/                                   every table
//   #/<namespace>/<table>/<view>?…       a page of one table; levels of a namespace end in %1F
//   #/<namespace>/<view>/view            a view of the catalog: a name for a query
// A view is a module with `mount(host, page)`; it may return {update(params), changed(), leave()}.

import { get, onTokenNeeded, open, tableApi } from "./api.js";
import { askForToken, toast } from "./dialogs.js";
import { b, h, icon, put, snowflake, trouble, waiting } from "./dom.js";
import { tableHash } from "./links.js";
import * as theme from "./theme.js";
import { num, short, size } from "./words.js";

const VIEWS = [
  ["overview", "Overview"],
  ["tree", "Tree"],
  ["history", "History"],
  ["schema", "Schema"],
  ["rows", "Rows"],
  ["sql", "SQL"],
  ["health", "Health"],
];
const OF_A_VIEW = "view";
const KEPT_ACROSS_VIEWS = ["snapshot", "where"];
const POLL_MS = 2500;

const $ = (id) => document.getElementById(id);
let session = null,
  shown = null,
  turn = 0,
  mark = "";

function route() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  const params = Object.fromEntries(new URLSearchParams(query));
  if (parts.length < 2) return { view: "catalog", params };
  const known = parts[2] === OF_A_VIEW || VIEWS.some(([id]) => id === parts[2]);
  const view = known ? parts[2] : "overview";
  return { view, levels: parts[0].split("\x1f"), name: parts[1], params };
}

function tabs(at) {
  $("tabs").hidden = at.view === "catalog" || at.view === OF_A_VIEW;
  if ($("tabs").hidden) return;
  const params = Object.fromEntries(
    KEPT_ACROSS_VIEWS.filter((k) => shown.params[k]).map((k) => [k, shown.params[k]]),
  );
  put(
    $("tabs"),
    VIEWS.map(([id, label]) =>
      h(
        "a",
        { href: tableHash(at.levels, at.name, id, params), "aria-current": id === at.view ? "page" : null },
        label,
      ),
    ),
  );
}

function heading(at) {
  document.body.className = at.view;
  const full = at.view === "catalog" ? "Tables" : [...at.levels, at.name].join(".");
  document.title = `${full} · Frazil`;
  put(
    $("title"),
    at.view === "catalog"
      ? "Frazil"
      : [
          h("a", { href: "#/?namespace=" + encodeURIComponent(at.levels.join("\x1f")) }, at.levels.join(".")),
          h("span", {}, " / "),
          at.name,
        ],
  );
  put($("facts"));
  put($("tools"));
}

function factsOf(list) {
  put(
    $("facts"),
    list
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))),
  );
}

/** What a view is given: the table, its API and overview, the address, and the header. */
function pageOf(at) {
  const page = {
    session,
    levels: at.levels,
    name: at.name,
    params: at.params,
    api: at.name === undefined ? null : tableApi(at.levels, at.name),
    facts: factsOf,
    tableFacts: (o) =>
      factsOf([
        ["rows", o.rows === null ? null : short(o.rows)],
        ["files", o.files === null ? null : num(o.files)],
        ["in use", o.bytes === null ? null : size(o.bytes)],
        ["snapshot", o.snapshot ? "…" + String(o.snapshot).slice(-6) : null],
      ]),
    tools: (...kids) => put($("tools"), ...kids),
    link: (view, params = {}) => tableHash(at.levels, at.name, view, params),
    /** Writes the view's state to the address without a new page. */
    save(params) {
      page.params = shown.params = Object.fromEntries(
        Object.entries(params).filter(([, v]) => v !== null && v !== undefined && v !== ""),
      );
      const query = new URLSearchParams(page.params);
      const path = at.view === "catalog" ? "#/" : tableHash(at.levels, at.name, at.view);
      history.replaceState(history.state, "", path + (query.size ? `?${query}` : ""));
      shown.hash = location.hash;
      tabs(at);
    },
    go: (hash) => {
      location.hash = hash;
    },
    async overview(again = false) {
      if (again || !page.known) page.known = await page.api.get("overview");
      return page.known;
    },
  };
  return page;
}

async function show() {
  const at = route(),
    mine = ++turn;
  const same =
    shown &&
    shown.at.view === at.view &&
    shown.at.name === at.name &&
    String(shown.at.levels) === String(at.levels);
  if (same && location.hash === shown.hash) return;
  if (same && shown.view?.update) {
    shown.hash = location.hash;
    shown.params = shown.page.params = at.params;
    shown.view.update(at.params);
    return;
  }
  shown?.view?.leave?.();
  shown = { at, hash: location.hash, params: at.params, view: null, page: null };
  heading(at);
  tabs(at);
  const host = h("div", { class: "host" }),
    here = shown;
  put($("main"), host);
  put(host, waiting("Loading"));
  try {
    const module = await import(`/explorer/views/${at.view}.js`);
    if (mine !== turn) return;
    here.page = pageOf(at);
    const view = await module.mount(host, here.page);
    if (mine !== turn) view?.leave?.();
    else here.view = view;
  } catch (error) {
    if (mine !== turn || error.name === "AbortError") return;
    put(
      host,
      h(
        "div",
        { class: "sheet" },
        trouble(error),
        at.view !== "catalog" && h("p", {}, h("a", { href: "#/" }, "All tables")),
      ),
    );
  }
}

async function listen() {
  if (!document.hidden) {
    try {
      const news = await get("/changes", { since: mark });
      const first = !mark;
      mark = news.mark;
      const { at, view } = shown ?? {};
      if (!first && (news.reset || news.changed.length || news.gone.length) && view?.changed) {
        if (at.view === "catalog") view.changed(news);
        else if (
          news.reset ||
          news.changed.some((t) => t.name === at.name && String(t.levels) === String(at.levels))
        )
          view.changed(news);
      }
    } catch {
      /* the next request that matters will say it */
    }
  }
  setTimeout(listen, POLL_MS);
}

function themeButton() {
  const next = theme.dark() ? "light" : "dark";
  put($("theme"), icon(next === "light" ? "sun" : "moon"));
  $("theme").setAttribute("aria-label", `Switch to ${next}`);
}

theme.watch(themeButton);
theme.apply();
put($("home"), snowflake());
$("theme").addEventListener("click", theme.toggle);
$("skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});
onTokenNeeded(askForToken);
addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "AbortError") event.preventDefault();
  else if (event.reason?.status !== undefined) {
    event.preventDefault();
    toast(event.reason.message, "warn");
  }
});
try {
  session = await open();
  if (session.start && location.hash.length < 3)
    history.replaceState(null, "", tableHash(session.start.slice(0, -1), session.start.at(-1)));
  addEventListener("hashchange", show);
  await show();
  listen();
} catch (error) {
  put(
    $("main"),
    h(
      "div",
      { class: "sheet" },
      trouble(error),
      h("p", {}, b("Reload the page"), " when the server is back."),
    ),
  );
}
