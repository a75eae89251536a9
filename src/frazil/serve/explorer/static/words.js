// Numbers, sizes, times and counts as people write them.

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

export const num = (n) => (typeof n === "number" ? n.toLocaleString("en-US") : String(n));

export function size(bytes) {
  let value = Number(bytes ?? 0),
    unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

export const short = (n) =>
  n >= 1e9 ? (n / 1e9).toFixed(2) + " bn" : n >= 1e6 ? (n / 1e6).toFixed(1) + " M" : num(n);

export const count = (n, one, many = one + "s") => `${num(n)} ${n === 1 ? one : many}`;

export const when = (ms) => new Date(ms).toISOString().slice(0, 16).replace("T", " ");

export const day = (ms) =>
  new Date(ms).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export function ago(ms, now = Date.now()) {
  const s = Math.max(0, (now - ms) / 1000);
  if (s < 60) return "just now";
  const [n, unit] = s < 3600 ? [s / 60, "minute"] : s < 86400 ? [s / 3600, "hour"] : [s / 86400, "day"];
  return Math.floor(n) < 400 ? `${count(Math.floor(n), unit)} ago` : when(ms).slice(0, 10);
}

export const percent = (part, whole) => (whole ? (part / whole) * 100 : 0);

/** Ids are longer than JavaScript's numbers and stay strings. */
export const shortId = (id) => String(id).slice(-6);

export const debounce = (ms, run) => {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), ms);
  };
};
