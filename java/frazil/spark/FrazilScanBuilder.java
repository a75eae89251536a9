package frazil.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** Collects the columns and filters of one scan, then asks the tree which files are left. */
class FrazilScanBuilder
    implements SupportsPushDownRequiredColumns, SupportsPushDownCatalystFilters, SupportsPushDownAggregates {
  private final Bridge bridge;
  private final SparkSession session;
  private final Supplier<FrazilTable> table;
  private StructType schema;
  private List<Expression> filters = List.of();
  private List<Expression> remaining = List.of();
  private Known known;

  FrazilScanBuilder(Bridge bridge, SparkSession session, StructType schema, Supplier<FrazilTable> table) {
    this.bridge = bridge;
    this.session = session;
    this.schema = schema;
    this.table = table;
  }

  /**
   * Filters stay with Spark: the tree only leaves out files that cannot match. Those on partition columns need not
   * where every row of the files that are left fulfils them.
   */
  @Override
  public Seq<Expression> pushFilters(Seq<Expression> pushed) {
    filters = Scala.list(pushed);
    remaining = filters;
    Set<String> known = table.get().partitionColumns();
    Map<Boolean, List<Expression>> parts =
        filters.stream().collect(Collectors.partitioningBy(filter -> known.containsAll(columns(filter))));
    if (parts.get(true).isEmpty()) return pushed;
    Map<String, Object> request = request(new StructType(), parts.get(true));
    if (bridge.ask("settled", request).of("settled").flag()) remaining = parts.get(false);
    return Scala.seq(remaining);
  }

  private static List<String> columns(Expression filter) {
    List<Attribute> columns = Scala.list(filter.references().toSeq());
    return columns.isEmpty() ? List.of("") : columns.stream().map(Attribute::name).toList();
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

  /** Counts, least and greatest values of all rows that match: the tree may know them. */
  public boolean pushAggregation(Aggregation aggregation) {
    if (known != null) return true;
    if (aggregation.groupByExpressions().length > 0 || !remaining.isEmpty()) return false;
    List<List<Object>> asked = new ArrayList<>();
    StructType result = new StructType();
    for (AggregateFunc function : aggregation.aggregateExpressions()) {
      List<Object> described = described(function);
      if (described == null) return false;
      boolean isCount = described.get(0).equals("count");
      DataType type = isCount ? DataTypes.LongType : table.get().schema().apply((String) described.get(1)).dataType();
      result = result.add(function.describe() + " " + asked.size(), type, !isCount);
      asked.add(described);
    }
    if (asked.isEmpty()) return false;
    Map<String, Object> request = request(new StructType(), filters);
    request.put("aggregates", asked);
    Json answer = bridge.ask("aggregate", request);
    if (!answer.has("values")) return false;
    known = new Known(table.get().name(), result, answer.of("values"));
    return true;
  }

  /** An aggregate as Python knows it; null for one that metadata does not answer. */
  private List<Object> described(AggregateFunc function) {
    if (function instanceof CountStar) return List.of("count");
    if (function instanceof Count count && !count.isDistinct()) return named("count", count.column());
    if (function instanceof Min least) return named("min", least.column());
    return function instanceof Max greatest ? named("max", greatest.column()) : null;
  }

  private List<Object> named(String kind, org.apache.spark.sql.connector.expressions.Expression of) {
    boolean isColumn = of instanceof NamedReference column && column.fieldNames().length == 1;
    if (!isColumn) return null;
    String name = ((NamedReference) of).fieldNames()[0];
    return Set.of(table.get().schema().fieldNames()).contains(name) ? List.of(kind, name) : null;
  }

  /** Values that no file is read for. */
  record Known(String name, StructType readSchema, Json values) implements LocalScan {
    @Override
    public InternalRow[] rows() {
      Object[] made = new Object[values.size()];
      Arrays.setAll(made, i -> Values.of(values.at(i), readSchema.fields()[i].dataType()));
      return new InternalRow[] {new GenericInternalRow(made)};
    }

    @Override
    public String description() {
      return "frazil " + name + " (answered by the tree)";
    }
  }

  private Map<String, Object> request(StructType columns, List<Expression> filters) {
    Map<String, Object> request = Predicates.described(filters);
    request.put("table", table.get().name());
    request.put("token", table.get().token());
    request.put("schema", columns.json());
    return request;
  }

  public Scan build() {
    if (known != null) return known;
    Map<String, Object> request = request(schema, filters);
    request.put("grouped by", org.apache.spark.sql.internal.SQLConf.get().v2BucketingEnabled());
    Json plan = bridge.ask("plan", request);
    if (plan.of("native").flag()) {
      return new FrazilScan(bridge, session, request, schema, filters, plan);
    }
    return new FetchedScan(bridge, request, schema, plan.of("bytes").number());
  }
}
