// Light and dark: as the system says, until a person chooses. The choice is kept in this browser.

const system = matchMedia("(prefers-color-scheme: dark)");
const watchers = new Set();

const kept = () => {
  try {
    return localStorage.getItem("frazil-theme");
  } catch {
    return null;
  }
};

export const dark = () => document.documentElement.dataset.theme === "dark";
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export function apply(choice = kept() ?? (system.matches ? "dark" : "light")) {
  document.documentElement.dataset.theme = choice;
  for (const watcher of watchers) watcher(choice);
}

export function toggle() {
  const next = dark() ? "light" : "dark";
  try {
    localStorage.setItem("frazil-theme", next);
  } catch {
    /* private windows keep nothing */
  }
  apply(next);
}

export const watch = (watcher) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

system.addEventListener("change", () => {
  if (!kept()) apply();
});

/** The colour of a place between 0 and 1: text on it has a contrast of 5.9 or more. */
export const ramp = (t) =>
  dark()
    ? `oklch(${(0.29 + 0.22 * t).toFixed(3)} ${(0.035 + 0.085 * t).toFixed(3)} ${(205 + 70 * t).toFixed(0)})`
    : `oklch(${(0.955 - 0.225 * t).toFixed(3)} ${(0.022 + 0.085 * t).toFixed(3)} ${(205 + 65 * t).toFixed(0)})`;

/** A gradient over a range: one tone for a narrow range, the whole ramp for a wide one. */
export function gradient(from, to) {
  const steps = Math.max(1, Math.ceil((to - from) * 6));
  const colours = Array.from({ length: steps + 1 }, (_, i) => ramp(from + ((to - from) * i) / steps));
  return `linear-gradient(90deg,${colours.join(",")})`;
}

export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
