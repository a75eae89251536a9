package frazil.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;

/** Spark's cache of tables, which a change must not leave behind. */
public class Caches {
  private Caches() {}

  /** Reads again what is cached of a table. */
  static void refresh(SparkSession session, String catalog, Identifier table) {
    List<String> parts = new ArrayList<>(List.of(table.namespace()));
    parts.add(0, catalog);
    parts.add(table.name());
    refresh(session, parts);
  }

  /** The same by the levels of the table's name. */
  public static void refresh(SparkSession session, List<String> parts) {
    if (((org.apache.spark.sql.classic.SparkSession) session).sharedState().cacheManager().isEmpty()) return;
    List<String> quoted = new ArrayList<>();
    for (String part : parts) quoted.add("`" + part.replace("`", "``") + "`");
    session.catalog().refreshTable(String.join(".", quoted));
  }
}
