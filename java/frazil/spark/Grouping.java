package frazil.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The partitions that the files of a plan lie in: transforms of columns, and the values that occur. */
record Grouping(Json fields, List<InternalRow> keys) {
  private static final String KEEP = "spark.sql.iceberg.planning.preserve-data-grouping";

  /** None for a plan without partitions that Spark can compare. */
  static Grouping of(Json plan, StructType schema) {
    if (!plan.has("groups") || plan.of("groups").of("fields").size() == 0) return null;
    Json fields = plan.of("groups").of("fields");
    DataType[] types = fields.items().stream().map(field -> type(field, schema)).toArray(DataType[]::new);
    List<InternalRow> keys = plan.of("groups").of("keys").items().stream().map(key -> row(key, types)).toList();
    return new Grouping(fields, keys);
  }

  private static InternalRow row(Json key, DataType[] types) {
    Object[] values = new Object[types.length];
    Arrays.setAll(values, i -> Values.of(key.at(i), types[i]));
    return new GenericInternalRow(values);
  }

  private static DataType type(Json field, StructType schema) {
    return switch (field.of("transform").text()) {
      case "identity" -> schema.apply(field.of("name").text()).dataType();
      case "days" -> DataTypes.DateType;
      default -> DataTypes.IntegerType;
    };
  }

  /** The names by which Python knows the fields. */
  List<String> names() {
    return fields.items().stream().map(field -> field.of("key").text()).toList();
  }

  Expression[] transforms() {
    return fields.items().stream().map(Transforms::of).toArray(Expression[]::new);
  }

  /**
   * Whether a scan keeps partitions apart. Iceberg's setting decides where it is given; else it is done where that
   * makes at most twice as many tasks.
   */
  static boolean isWorthIt(org.apache.spark.sql.SparkSession session, int tasks, int grouped) {
    scala.Option<String> said = session.conf().getOption(KEEP);
    return said.isDefined() ? Boolean.parseBoolean(said.get()) : grouped <= 2 * tasks;
  }
}
