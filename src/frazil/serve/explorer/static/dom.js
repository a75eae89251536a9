// Making elements. Text is always a text node and styles are set by CSSOM, never by markup:
// a name such as <script> is shown, not run, and the content security policy holds.

const SVG = "http://www.w3.org/2000/svg";

const flat = (kids) =>
  kids.flat(9).filter((kid) => kid !== null && kid !== undefined && kid !== false && kid !== true);

function set(element, given) {
  for (const [key, value] of Object.entries(given ?? {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "css")
      for (const [name, of] of Object.entries(value)) element.style.setProperty(name, of);
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(key, value === true ? "" : value);
  }
  return element;
}

/** Replaces the children of an element. */
export const put = (element, ...kids) => {
  element.replaceChildren(...flat(kids));
  return element;
};

/** An HTML element with attributes (`on…` listens, `css` sets properties) and children. */
export const h = (tag, given, ...kids) => put(set(document.createElement(tag), given), ...kids);

/** An SVG element. */
export const s = (tag, given, ...kids) => put(set(document.createElementNS(SVG, tag), given), ...kids);

export const b = (...kids) => h("b", {}, ...kids);
export const code = (...kids) => h("span", { class: "col" }, ...kids);

const PATHS = {
  append: "M8 3v10M3 8h10",
  delete: "M3 8h10",
  replace: "M3 6h8L8.500 3.500M13 10H5l2.500 2.500",
  overwrite: "M3 6h8L8.500 3.500M13 10H5l2.500 2.500",
  prev: "M10 3L5 8l5 5",
  next: "M6 3l5 5-5 5",
  play: "M5 3l8 5-8 5z",
  pause: "M5.500 3v10M10.500 3v10",
  sun:
    "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15" +
    "M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.500l3.200 3.200L13 4.800",
  warn: "M8 2.500L14.500 13.500H1.500zM8 6.500v3.200M8 11.700v.1",
  dots: "M3 8h.01M8 8h.01M13 8h.01",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9M10.300 10.300L14 14",
  folder: "M1.800 4.200h4.400l1.500 1.700h6.500v7H1.800z",
};

/** A line icon that speaks to nobody; say its meaning beside it. */
export const icon = (name) =>
  s(
    "svg",
    { viewBox: "0 0 16 16", class: "ico", "aria-hidden": "true" },
    s("path", {
      d: PATHS[name] ?? PATHS.dots,
      fill: name === "play" ? "currentColor" : "none",
      stroke: "currentColor",
      "stroke-width": name === "dots" ? 2.4 : 1.6,
      "stroke-linecap": "round",
      "stroke-linejoin": "round",
    }),
  );

export const snowflake = () =>
  s(
    "svg",
    { viewBox: "0 0 24 24", class: "flake", "aria-hidden": "true" },
    s("path", {
      d: "M12 2v20M3.300 7l17.400 10M20.700 7L3.300 17M9.500 4L12 6.500 14.500 4M9.500 20l2.500-2.500 2.500 2.500",
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 1.7,
      "stroke-linecap": "round",
    }),
  );

/** A button with words on it. */
export const button = (onclick, ...kids) => h("button", { class: "btn", type: "button", onclick }, ...kids);

/** A part of a page under a heading. */
export const card = (title, ...kids) => h("div", { class: "card" }, h("h2", {}, title), ...kids);

/** The heading of a card, with controls beside it. */
export const cardHead = (title, ...kids) => h("div", { class: "chead" }, h("h2", {}, title), ...kids);

/** A table that scrolls by itself: heads are `th` elements, rows are `tr` elements or a `tbody`. */
export function sheet(heads, rows, { label, caption = label, kind = "", tall = false }) {
  return h(
    "div",
    { class: tall ? "scroll tall" : "scroll", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      { class: `data ${kind}` },
      h("caption", { class: "sr" }, caption),
      h("thead", {}, h("tr", {}, heads)),
      Array.isArray(rows) ? h("tbody", {}, rows) : rows,
    ),
  );
}

/** A table: heads are [label, class], rows are lists of cells. */
export function grid(heads, rows, { label, kind = "" }) {
  return sheet(
    heads.map(([head, place]) => h("th", { class: place, scope: "col" }, head)),
    rows.map((cells) =>
      h(
        "tr",
        { class: cells.kind },
        cells.map((cell, at) => h("td", { class: heads[at]?.[1] }, cell)),
      ),
    ),
    { label, kind },
  );
}

/** A line that says that something is on its way. */
export const waiting = (what) => h("p", { class: "waiting", role: "status" }, what);

/** What went wrong, in place of what was asked for. */
export const trouble = (error) =>
  h(
    "div",
    { class: "trouble", role: "alert" },
    icon("warn"),
    h("div", {}, b(error.title ?? "This did not work"), h("p", {}, error.message)),
  );
