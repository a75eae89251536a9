package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.CatalogManager;

/** A name in a statement that leads into a Frazil catalog, from its first namespace on. */
record NamedPath(FrazilCatalog catalog, List<String> parts) {
  /** The table or view that a name means; null where it is in another catalog. */
  static NamedPath of(CatalogManager catalogs, List<String> name) {
    NamedPath path = within(catalogs, name);
    if (path == null || path.parts.size() > 1 || name.size() > 1) return path;
    List<String> parts = new ArrayList<>(List.of(catalogs.currentNamespace()));
    parts.addAll(name);
    return new NamedPath(path.catalog, parts);
  }

  /** The namespace that a name means; without a name, the current one. */
  static NamedPath namespace(CatalogManager catalogs, List<String> name) {
    return within(catalogs, name.isEmpty() ? List.of(catalogs.currentNamespace()) : name);
  }

  private static NamedPath within(CatalogManager catalogs, List<String> name) {
    boolean named = !name.isEmpty() && catalogs.isCatalogRegistered(name.get(0));
    String catalog = named ? name.get(0) : catalogs.currentCatalog().name();
    if (!(catalogs.catalog(catalog) instanceof FrazilCatalog ours)) return null;
    return new NamedPath(ours, named ? name.subList(1, name.size()) : name);
  }

  /** What Python knows of the view of this name; null if there is none. */
  Json view() {
    if (parts.size() < 2) return null;
    Map<String, Object> request = new LinkedHashMap<>();
    request.put("path", parts);
    Json view = catalog.bridge().ask("load view", request);
    return view.has("missing") ? null : view;
  }

  String quoted() {
    StringBuilder text = new StringBuilder("`" + catalog.name() + "`");
    for (String part : parts) text.append(".`").append(part.replace("`", "``")).append("`");
    return text.toString();
  }
}
