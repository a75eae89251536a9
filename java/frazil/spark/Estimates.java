package frazil.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What a plan knows of the rows it will give; columns are looked at only where Spark's optimizer asks for them. */
record Estimates(long bytes, long rows, StructType schema, Supplier<Json> columns) implements Statistics {
  /** The size of the rows in memory, not that of compressed files. */
  static Estimates of(Json plan, StructType schema, Supplier<Json> columns) {
    Json sizes = plan.of("sizes");
    long width = 0L;
    for (StructField field : schema.fields()) {
      width += sizes.has(field.name()) ? sizes.of(field.name()).number() : field.dataType().defaultSize();
    }
    long rows = plan.of("rows").number();
    return new Estimates(Math.max(1L, rows * Math.max(1L, width)), rows, schema, columns);
  }

  @Override
  public OptionalLong sizeInBytes() {
    return OptionalLong.of(bytes);
  }

  @Override
  public OptionalLong numRows() {
    return OptionalLong.of(rows);
  }

  @Override
  public Map<NamedReference, ColumnStatistics> columnStats() {
    SQLConf conf = SQLConf.get();
    if (!conf.cboEnabled() && !conf.planStatsEnabled()) return Map.of();
    Json told = columns.get();
    Map<NamedReference, ColumnStatistics> made = new HashMap<>();
    for (StructField field : schema.fields()) {
      if (told.has(field.name())) {
        NamedReference column = new FieldReference(Scala.seq(List.of(field.name())));
        made.put(column, new Told(told.of(field.name()), field.dataType()));
      }
    }
    return made;
  }

  /** One column. */
  record Told(Json told, DataType type) implements ColumnStatistics {
    private OptionalLong count(String name) {
      return told.has(name) ? OptionalLong.of(told.of(name).number()) : OptionalLong.empty();
    }

    private Optional<Object> bound(String name) {
      return told.has(name) ? Optional.of(Values.of(told.of(name), type)) : Optional.empty();
    }

    @Override
    public OptionalLong distinctCount() {
      return count("distinct");
    }

    @Override
    public OptionalLong nullCount() {
      return count("nulls");
    }

    @Override
    public Optional<Object> min() {
      return bound("min");
    }

    @Override
    public Optional<Object> max() {
      return bound("max");
    }
  }
}
