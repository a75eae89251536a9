// Where leaves are drawn. Pure arithmetic: entries in, rectangles out.

const GAP = 3;
const GUTTER = 34;

/** Neighbours merged so that at most `most` groups are left: [{from, to, n}]. */
export function groups(count, most) {
  const per = Math.max(1, Math.ceil(count / most)),
    out = [];
  for (let from = 0; from < count; from += per)
    out.push({ from, to: Math.min(count, from + per), n: Math.min(count, from + per) - from });
  return out;
}

/** Boxes: rows of one height in root order, area by entries; small neighbours share one place. */
export function boxes(entries, width, height) {
  if (!entries.length) return [];
  const top = Math.max(...entries, 1),
    units = [];
  entries.forEach((n, i) => {
    const small = n < top * 0.3,
      w = Math.max(n / top, 0.17),
      last = units.at(-1);
    if (small && last?.small && last.ids.length < 9) {
      last.ids.push(i);
      last.w += w;
    } else units.push({ small, ids: [i], w });
  });
  const sum = units.reduce((a, u) => a + u.w, 0);
  let best = null;
  for (let rows = 1; rows <= Math.min(units.length, 60); rows++) {
    const h = height / rows,
      w = width / (sum / rows),
      off = Math.abs(Math.log(w / h / 1.3));
    if (!best || off < best.off) best = { off, rows };
  }
  const rows = [];
  let before = 0;
  for (const unit of units) {
    const r = Math.min(best.rows - 1, Math.floor(((before + unit.w / 2) / sum) * best.rows));
    (rows[r] ??= []).push(unit);
    before += unit.w;
  }
  const used = rows.filter(Boolean),
    out = [],
    gap = entries.length > 600 ? 1.5 : GAP,
    h = (height + gap) / used.length;
  // A table of few leaves does not fill the page with one giant box.
  used.forEach((row, r) => {
    const total = row.reduce((a, u) => a + u.w, 0);
    let x = 0;
    for (const unit of row) {
      const w = (unit.w / total) * (width + gap),
        n = unit.ids.length;
      const across = n === 1 ? 1 : Math.max(1, Math.round(Math.sqrt((n * w) / h))),
        down = Math.ceil(n / across);
      unit.ids.forEach((id, j) => {
        const line = Math.floor(j / across),
          inLine = Math.min(across, n - line * across),
          cw = w / inLine;
        out[id] = {
          x: x + (j % across) * cw,
          y: r * h + (line * h) / down,
          w: Math.max(1, cw - gap),
          h: Math.max(1, h / down - gap),
        };
      });
      x += w;
    }
  });
  return out;
}

/** Bars: one under the other, from lower to upper bound on the column's scale. */
export function ranges(entries, lo, hi, width, height) {
  const weight = entries.map((n) => Math.sqrt(Math.max(n, 60))),
    sum = weight.reduce((a, x) => a + x, 0);
  const gap = entries.length > 120 ? 0.5 : 1.5,
    free = Math.max(10, height - gap * (entries.length - 1));
  let y = 0;
  return entries.map((_, i) => {
    const h = Math.max(entries.length > 120 ? 0.5 : 3, (free * weight[i]) / sum),
      a = lo[i] ?? 0,
      z = hi[i] ?? 1;
    const at = {
      x: GUTTER + a * (width - GUTTER),
      y,
      w: Math.max(4, (z - a) * (width - GUTTER)),
      h,
      bar: true,
    };
    y += h + gap;
    return at;
  });
}

export const gutter = GUTTER;
