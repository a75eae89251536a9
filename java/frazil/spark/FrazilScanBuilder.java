package frazil.spark;

import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Collects the columns and filters of one scan, then asks the tree which files are left. */
class FrazilScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownCatalystFilters {
  private final Bridge bridge;
  private final SparkSession session;
  private final FrazilTable table;
  private StructType schema;
  private Seq filters = (Seq) (Object) Nil$.MODULE$;

  FrazilScanBuilder(Bridge bridge, SparkSession session, FrazilTable table) {
    this.bridge = bridge;
    this.session = session;
    this.table = table;
    this.schema = table.schema();
  }

  /** All filters stay with Spark: the tree only leaves out files that cannot match. */
  public Seq pushFilters(Seq given) {
    filters = given;
    return given;
  }

  public Predicate[] pushedFilters() {
    return new Predicate[0];
  }

  public void pruneColumns(StructType required) {
    schema = required;
  }

  public Scan build() {
    Map request = Predicates.described(filters);
    request.put("table", table.name());
    request.put("token", table.token());
    request.put("schema", schema.json());
    Json plan = bridge.ask("plan", request);
    if (plan.of("native").flag()) {
      return new FrazilScan(bridge, session, request, schema, filters, plan);
    }
    return new FetchedScan(bridge, request, schema, plan);
  }
}
