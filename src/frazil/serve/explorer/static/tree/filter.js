// The filter box: completion of columns without a request, the server's completion on demand
// (Ctrl+Space or Arrow down), and errors under the character.

import { h, put } from "../dom.js";

const STARTS = /(?:^|\bAND\s+|\bOR\s+|\bNOT\s+|\(\s*)([A-Za-z_][\w.]*)?$/i;

let numbered = 0;

export class FilterBox {
  /** `columns()` lists {path, type, has_bounds}; `complete(where, at)` asks the server. */
  constructor({ columns, complete, onchange, placeholder, value = "" }) {
    this.pen = null;
    const id = `f${++numbered}`;
    this.columns = columns;
    this.complete = complete;
    this.onchange = onchange;
    this.list = [];
    this.at = -1;
    this.error = null;
    this.input = h("input", {
      id,
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": `${id}-sug`,
      "aria-describedby": `${id}-err`,
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      placeholder,
    });
    this.input.value = value;
    this.slash = h("kbd", { title: "Press / to type a filter" }, "/");
    this.clear = h(
      "button",
      {
        class: "clear",
        type: "button",
        hidden: true,
        onclick: () => {
          this.set("");
          this.input.focus();
        },
      },
      "Clear",
    );
    this.box = h(
      "div",
      { class: "fbox" },
      h("label", { for: id }, "where"),
      this.input,
      this.slash,
      this.clear,
    );
    this.err = h("div", { class: "err", id: `${id}-err`, role: "alert", hidden: true });
    this.sug = h("ul", {
      class: "sug",
      id: `${id}-sug`,
      role: "listbox",
      "aria-label": "Completions",
      hidden: true,
    });
    this.element = h("div", { class: "filter" }, this.box, this.err, this.sug);
    this.input.addEventListener("input", () => {
      this.suggest();
      this.changed();
    });
    this.input.addEventListener("blur", () => this.offer([]));
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.tidy();
  }

  get value() {
    return this.input.value;
  }

  set(text) {
    this.input.value = text;
    this.offer([]);
    this.changed();
  }

  /** Shows a text that came from elsewhere, such as the address. */
  show(text) {
    this.input.value = text;
    this.tidy();
  }

  tidy() {
    this.clear.hidden = !this.value;
    this.slash.hidden = Boolean(this.value);
  }

  changed() {
    this.tidy();
    this.onchange(this.value);
  }

  suggest() {
    const left = this.value.slice(0, this.input.selectionStart),
      found = STARTS.exec(left);
    if (!found) return this.offer([]);
    const word = found[1] ?? "";
    if (!word && !/\s$/.test(left)) return this.offer([]);
    const want = word.toLowerCase();
    const names = this.columns().filter((c) => c.path.toLowerCase().includes(want) && c.path !== word);
    names.sort((x, y) => y.path.toLowerCase().startsWith(want) - x.path.toLowerCase().startsWith(want));
    return this.offer(
      names
        .slice(0, 8)
        .map((c) => ({ text: quoted(c.path), hint: c.has_bounds ? c.type : `${c.type}, no bounds` })),
      left.length - word.length,
    );
  }

  async askServer() {
    const at = this.input.selectionStart,
      text = this.value;
    const found = await this.complete(text, at);
    if (this.value !== text || document.activeElement !== this.input) return;
    this.offer(
      found.names.map((name) => ({ text: name, hint: found.kind === "value" ? "" : found.kind })),
      found.from,
      found.to,
    );
  }

  offer(list, from = 0, to = this.input.selectionStart) {
    this.list = list;
    this.from = from;
    this.to = to;
    this.at = list.length ? 0 : -1;
    this.paint();
  }

  paint() {
    this.sug.hidden = !this.list.length;
    this.input.setAttribute("aria-expanded", String(Boolean(this.list.length)));
    if (this.list.length) this.input.setAttribute("aria-activedescendant", `${this.sug.id}-${this.at}`);
    else this.input.removeAttribute("aria-activedescendant");
    put(
      this.sug,
      this.list.map((each, i) =>
        h(
          "li",
          {
            role: "option",
            id: `${this.sug.id}-${i}`,
            "aria-selected": String(i === this.at),
            onmousedown: (event) => {
              event.preventDefault();
              this.accept(each);
            },
          },
          each.text,
          h("span", {}, each.hint),
        ),
      ),
    );
    if (this.list.length)
      this.sug.style.left = `${Math.max(0, Math.min(this.x(this.from) - 10, this.box.offsetWidth - 220))}px`;
    this.fault();
  }

  accept(each) {
    const left = this.value.slice(0, this.from) + each.text + " ",
      right = this.value.slice(this.to).replace(/^ /, "");
    this.input.value = left + right;
    this.input.setSelectionRange(left.length, left.length);
    this.offer([]);
    this.changed();
  }

  key(event) {
    const { list } = this;
    if (list.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : -1) + list.length) % list.length;
      this.paint();
    } else if (list.length && (event.key === "Enter" || event.key === "Tab")) {
      event.preventDefault();
      this.accept(list[this.at]);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (list.length) this.offer([]);
      else if (this.value) this.set("");
    } else if (event.key === "ArrowDown" || (event.key === " " && event.ctrlKey)) {
      event.preventDefault();
      this.askServer().catch(() => this.offer([]));
    }
  }

  /** The error of the text as it stands, or null. */
  mark(error) {
    this.error = error;
    this.fault();
  }

  fault() {
    const { error } = this;
    const typing = error && document.activeElement === this.input && error.at >= this.value.trimEnd().length;
    this.box.classList.toggle("bad", Boolean(error) && !typing);
    this.input.setAttribute("aria-invalid", String(Boolean(error) && !typing));
    this.err.hidden = !error || Boolean(this.list.length);
    if (this.err.hidden) return;
    const message = error.message.charAt(0).toUpperCase() + error.message.slice(1),
      hint = error.hint ?? "";
    put(
      this.err,
      /[.?!]$/.test(message) ? message : `${message}.`,
      hint ? ` ${hint.charAt(0).toUpperCase()}${hint.slice(1)}` : "",
    );
    const x = this.x(error.at),
      left = Math.min(Math.max(0, x - 16), Math.max(0, this.box.offsetWidth - this.err.offsetWidth));
    this.err.style.left = `${left}px`;
    this.err.style.setProperty("--px", `${x - left}px`);
    this.err.dataset.at = error.at;
  }

  /** The place of a character, in pixels from the left edge of the box. */
  x(at) {
    const pen = (this.pen ??= document.createElement("canvas").getContext("2d")),
      style = getComputedStyle(this.input);
    pen.font = `${style.fontSize} ${style.fontFamily}`;
    return (
      this.input.offsetLeft +
      parseFloat(style.paddingLeft) +
      pen.measureText(this.value.slice(0, at)).width -
      this.input.scrollLeft
    );
  }
}

const quoted = (path) =>
  path.split(".").every((part) => /^[A-Za-z_]\w*$/.test(part)) ? path : `"${path.replaceAll('"', '""')}"`;

/** Examples made from the table's own bounds: [label, filter]. */
export function examples(tree) {
  const out = [["No filter", ""]];
  const n = tree.leaves.id.length;
  for (const column of tree.columns.slice(0, 6)) {
    const texts = column.leaves.lo_text
      .map((lo, i) => [lo, column.leaves.hi_text[i]])
      .filter(([lo]) => lo !== null);
    if (!texts.length || out.length > 5) continue;
    const literal = literalOf(column.type),
      name = quoted(column.name);
    if (!literal) continue;
    const middle = texts[Math.floor(texts.length * 0.62)][0];
    const high = column.ticks.length > 2 ? column.ticks.at(-2)[1] : texts.at(-1)[0];
    const equal = [`${column.name} = ${middle}`, `${name} = ${literal(middle)}`];
    const above = [`${column.name} > ${high}`, `${name} > ${literal(high)}`];
    const wide =
      /^(double|float|decimal)/.test(column.type) ||
      (/^(long|int)/.test(column.type) && out.length % 2 === 0);
    out.push(wide && n ? above : equal);
  }
  return out.filter(([label], i) => label.length < 44 && out.findIndex(([l]) => l === label) === i);
}

function literalOf(type) {
  if (/^(long|int|double|float|decimal)/.test(type)) return (text) => text.replaceAll(",", "");
  if (/^(string|date|timestamp|uuid)/.test(type))
    return (text) => `'${text.replace(/…$/, "").replaceAll("'", "''")}'`;
  return null;
}
