// Addresses of views. Levels of a namespace are joined by a unit separator, as in the REST catalog.

export const LEVELS = "\x1f";

export function tableHash(levels, name, view = "overview", params = {}) {
  const query = new URLSearchParams(
    Object.entries(params).filter(([, v]) => v !== null && v !== undefined && v !== ""),
  );
  const table = `${encodeURIComponent(levels.join(LEVELS))}/${encodeURIComponent(name)}`;
  return `#/${table}/${view}${query.size ? `?${query}` : ""}`;
}
