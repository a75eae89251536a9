// Leaves as a table: the same facts as the drawing, for everyone who prefers to read them.

import { button, grid, h, put } from "../dom.js";
import { count, num, size } from "../words.js";
import { leafName, live, rangeText, reasonName, verdict } from "./model.js";

const PAGE = 100;

export class List {
  constructor(host, { onopen }) {
    this.host = host;
    this.onopen = onopen;
    this.shown = PAGE;
  }

  still() {}

  draw(state) {
    const { tree, column } = state,
      l = tree.leaves,
      rows = [];
    for (let i = 0; i < Math.min(this.shown, l.id.length); i++) {
      const told = verdict(state, i);
      const cells = [
        h("button", { class: "link", type: "button", onclick: () => this.onopen(l.id[i]) }, leafName(i)),
        num(live(tree, i)),
        num(l.dead[i]),
        size(l.bytes[i]),
        column ? rangeText(column, i) : "–",
        told
          ? told.off
            ? [h("span", { class: "tag plain" }, "skipped"), ` by ${reasonName(told.off)}`]
            : [h("span", { class: "tag acc" }, "opened"), ` ${count(told.left, "file")} left`]
          : "–",
      ];
      rows.push(Object.assign(cells, { kind: state.leaf === l.id[i] ? "here" : null }));
    }
    put(
      this.host,
      h(
        "div",
        { class: "leaf-list" },
        grid(
          [
            ["Leaf"],
            ["Live entries", "n"],
            ["Dead", "n"],
            ["Size", "n"],
            [column?.name ?? "Bounds"],
            ["This filter"],
          ],
          rows,
          { label: "Leaves of the root" },
        ),
        this.shown < l.id.length
          ? h(
              "p",
              { class: "more" },
              button(
                () => {
                  this.shown += PAGE * 5;
                  this.draw(state);
                },
                `Show more of ${num(l.id.length)} leaves`,
              ),
            )
          : null,
      ),
    );
  }

  focus() {
    this.host.querySelector("button")?.focus();
  }
  clear() {
    put(this.host);
  }
}
