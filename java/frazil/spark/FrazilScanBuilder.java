package frazil.spark;

import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Collects the columns and filters of one scan, then asks the tree which files are left. */
class FrazilScanBuilder
    implements SupportsPushDownRequiredColumns, SupportsPushDownCatalystFilters, SupportsPushDownAggregates {
  private final Bridge bridge;
  private final SparkSession session;
  private final FrazilTable table;
  private StructType schema;
  private Seq filters = (Seq) (Object) Nil$.MODULE$;
  private Counts counts;

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

  public boolean supportCompletePushDown(Aggregation aggregation) {
    return pushAggregation(aggregation);
  }

  /** COUNT(*) of all rows: the tree knows how many there are. */
  public boolean pushAggregation(Aggregation aggregation) {
    if (counts != null) return true;
    AggregateFunc[] wanted = aggregation.aggregateExpressions();
    boolean simple = aggregation.groupByExpressions().length == 0 && wanted.length > 0 && filters.isEmpty();
    for (int i = 0; i < wanted.length; i++) simple = simple && wanted[i] instanceof CountStar;
    if (!simple) return false;
    Json plan = bridge.ask("plan", request(new StructType()));
    if (!plan.has("live rows")) return false;
    counts = new Counts(table.name(), plan.of("live rows").number(), wanted.length);
    return true;
  }

  /** Numbers that no file is read for. */
  static class Counts implements LocalScan {
    private final String name;
    private final long rows;
    private final int times;

    Counts(String name, long rows, int times) {
      this.name = name;
      this.rows = rows;
      this.times = times;
    }

    public StructType readSchema() {
      StructType made = new StructType();
      for (int i = 0; i < times; i++) made = made.add("count(*)" + (i == 0 ? "" : " " + i), DataTypes.LongType, false);
      return made;
    }

    public InternalRow[] rows() {
      Object[] values = new Object[times];
      Arrays.fill(values, Long.valueOf(rows));
      return new InternalRow[] {new GenericInternalRow(values)};
    }

    public String description() {
      return "frazil " + name + " (rows counted by the tree)";
    }
  }

  private Map request(StructType wanted) {
    Map request = Predicates.described(filters);
    request.put("table", table.name());
    request.put("token", table.token());
    request.put("schema", wanted.json());
    return request;
  }

  public Scan build() {
    if (counts != null) return counts;
    Map request = request(schema);
    Json plan = bridge.ask("plan", request);
    if (plan.of("native").flag()) {
      return new FrazilScan(bridge, session, request, schema, filters, plan);
    }
    return new FetchedScan(bridge, request, schema, plan);
  }
}
