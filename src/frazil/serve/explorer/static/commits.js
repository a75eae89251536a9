// The commits of a table, all pages of them, oldest first and columnar.

const PAGE = 2000,
  MOST = 10000;

export async function commitsOf(api) {
  let all = null;
  for (;;) {
    const part = await api.get("commits", { limit: PAGE, after: all?.id.at(-1) });
    if (!all) all = part;
    else
      for (const [key, values] of Object.entries(part))
        if (Array.isArray(values) && key !== "lanes" && key !== "refs") all[key] = all[key].concat(values);
    if (!part.more || !part.id.length || all.id.length >= MOST) return all;
  }
}
