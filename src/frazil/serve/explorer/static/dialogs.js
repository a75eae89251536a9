// Dialogs: a token, a confirmation with a preview of what will happen, and short notices.

import { b, button, h, icon, put, trouble, waiting } from "./dom.js";
import { count } from "./words.js";

export function toast(text, kind = "check") {
  const note = h("div", { class: "toast" }, icon(kind), h("span", {}, text));
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), 6000);
}

/**
 * Back closes a dialog and stays on the page: it has an entry of its own in the browser's history.
 * @param {Node} content
 * @param {{label?: string, closable?: boolean, onclose?: () => void}} [options]
 */
function show(content, { label, closable = true, onclose } = {}) {
  const dialog = h("dialog", { "aria-labelledby": label }, content),
    back = () => dialog.close();
  dialog.addEventListener("cancel", (event) => {
    if (!closable) event.preventDefault();
  });
  dialog.addEventListener("close", () => {
    removeEventListener("popstate", back);
    dialog.remove();
    if (!history.state?.dialog) return onclose?.();
    // What follows may change the address, so it waits until the dialog's entry is left.
    addEventListener("popstate", () => onclose?.(), { once: true });
    return history.back();
  });
  document.body.append(dialog);
  dialog.showModal();
  if (closable) {
    history.pushState({ dialog: true }, "");
    addEventListener("popstate", back);
  }
  return dialog;
}

/** Asks for a bearer token until one is given. */
export function askForToken({ wrong }) {
  return new Promise((resolve) => {
    const field = h("input", {
      id: "token",
      type: "password",
      autocomplete: "off",
      required: true,
      "aria-describedby": "token-why",
    });
    const form = h(
      "form",
      { method: "dialog", onsubmit: () => resolve(field.value.trim()) },
      h("h2", { id: "dlg-title" }, "This server needs a token"),
      h(
        "p",
        { id: "token-why" },
        wrong
          ? "The last token was not accepted. Enter another one."
          : "Enter the token that the server’s operator gave you. It is kept until you close this tab.",
      ),
      h("label", { class: "field" }, "Token", field),
      h("div", { class: "acts" }, h("button", { class: "btn main", type: "submit" }, "Continue")),
    );
    show(form, { label: "dlg-title", closable: false });
    field.focus();
  });
}

/** What changes, before and after; or, where there is no before, just the numbers. */
function facts(list) {
  if (!list?.length) return null;
  const both = list.some((f) => f.before !== null);
  const after = (f) =>
    h(
      "td",
      { class: "n" },
      f.before === f.after ? h("span", { class: "dim" }, "unchanged") : b(f.after ?? "none"),
    );
  return h(
    "table",
    { class: "data facts-table" },
    h("caption", { class: "sr" }, "What changes"),
    both
      ? h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("td", {}),
            h("th", { scope: "col", class: "n" }, "Now"),
            h("th", { scope: "col", class: "n" }, "After"),
          ),
        )
      : null,
    h(
      "tbody",
      {},
      list.map((f) =>
        h(
          "tr",
          { class: f.before !== f.after ? "changed" : null },
          h("th", { scope: "row" }, f.label),
          both ? h("td", { class: "n" }, f.before) : null,
          after(f),
        ),
      ),
    ),
  );
}

const GRAVE = new Set(["rollback", "set_current", "drop_ref", "expire_snapshots", "remove_orphan_files"]);

const AGES = {
  expire_snapshots: ["Expire snapshots older than", "history.expire.max-snapshot-age-ms"],
  remove_orphan_files: ["Remove files older than", null],
};
const DAY_MS = 86_400_000;

/** The field of actions that delete what is old: how old. Empty is the table's own setting. */
export function askAge(action, overview) {
  if (!AGES[action]) return [];
  const [label, name] = AGES[action],
    setting = overview.properties.find((p) => p.name === name),
    ms = Number(setting?.value ?? setting?.default);
  const usual = !name ? "3 days" : ms >= DAY_MS ? count(Math.floor(ms / DAY_MS), "day") : null;
  return [
    {
      name: "older_than",
      label,
      optional: true,
      placeholder: `${usual ?? "the table’s setting"}; or an age such as 12 hours, or a date`,
    },
  ];
}

/**
 * Previews an action, asks, and carries it out. `fields` are inputs that the action needs first:
 * [{name, label, value, choices?, optional?, placeholder?}]. Resolves to the server's answer, or null when it was left.
 * @param {any} api
 * @param {string} action
 * @param {object} params
 * @param {{title?: string, fields?: any[], verb?: string}} [options]
 */
export function act(api, action, params, { title, fields = [], verb = "Do it" } = {}) {
  return new Promise((resolve) => {
    let outcome = null,
      preview = null,
      turn = 0;
    const inputs = fields.map((f) => [
      f,
      f.choices
        ? h(
            "select",
            { class: "pick", name: f.name },
            f.choices.map((c) => h("option", { value: c, selected: c === f.value }, c)),
          )
        : h("input", {
            name: f.name,
            value: f.value ?? "",
            placeholder: f.placeholder ?? null,
            autocomplete: "off",
            spellcheck: "false",
          }),
    ]);
    const body = h("div", { "aria-live": "polite" });
    const confirm = h(
      "button",
      { class: `btn ${GRAVE.has(action) ? "grave" : "main"}`, type: "submit", id: "confirm", disabled: true },
      verb,
    );
    const heading = h("h2", { id: "dlg-title" }, title ?? "Preview");
    const given = () => ({
      ...params,
      ...Object.fromEntries(inputs.map(([f, input]) => [f.name, input.value.trim()])),
    });

    async function ahead() {
      const mine = ++turn;
      confirm.disabled = true;
      preview = null;
      if (inputs.some(([f, input]) => !f.optional && !input.value.trim()))
        return put(body, h("p", {}, "Fill in the field to see what will happen."));
      put(body, waiting("Working out what will happen"));
      try {
        const found = await api.post(`actions/${action}`, { params: given(), confirm: null });
        if (mine !== turn) return undefined;
        preview = found;
        put(heading, found.title ?? title);
        put(
          body,
          h("div", { class: "preview" }, h("p", {}, found.sentence)),
          facts(found.facts),
          found.warnings?.length
            ? h(
                "div",
                { class: "trouble soft" },
                icon("warn"),
                h(
                  "div",
                  {},
                  found.warnings.map((w) => h("p", {}, w)),
                ),
              )
            : null,
        );
        confirm.disabled = Boolean(found.nothing);
      } catch (error) {
        if (mine === turn) put(body, trouble(error));
      }
      return undefined;
    }

    async function carryOut(event) {
      event.preventDefault();
      if (!preview || preview.nothing) return;
      confirm.disabled = true;
      put(confirm, "Working…");
      try {
        outcome = await api.post(`actions/${action}`, { params: given(), confirm: preview.confirm });
        toast(outcome.sentence ?? "Done.");
        dialog.close();
      } catch (error) {
        put(confirm, verb);
        put(body, trouble(error), error.status === 409 ? h("p", {}, button(ahead, "Preview again")) : null);
      }
    }

    let timer = 0;
    const later = () => {
      clearTimeout(timer);
      turn++;
      confirm.disabled = true;
      timer = setTimeout(ahead, 250);
    };
    inputs.forEach(([, input]) => input.addEventListener("input", later));
    const dialog = show(
      h(
        "form",
        { onsubmit: carryOut },
        heading,
        inputs.map(([f, input]) => h("label", { class: "field" }, f.label, input)),
        body,
        h(
          "div",
          { class: "acts" },
          button(() => dialog.close(), "Cancel"),
          confirm,
        ),
      ),
      { label: "dlg-title", onclose: () => resolve(outcome) },
    );
    inputs[0]?.[1].focus();
    ahead();
  });
}
