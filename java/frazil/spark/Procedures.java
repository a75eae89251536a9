package frazil.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * CALL: the arguments go to Python by name, its answer comes back as rows. It is bound to the types of the arguments
 * that are given.
 */
record Procedures(Bridge bridge, Json described) implements UnboundProcedure {
  @Override
  public String name() {
    return described.of("name").text();
  }

  @Override
  public String description() {
    return described.of("description").text();
  }

  @Override
  public BoundProcedure bind(StructType inputType) {
    return new Bound(bridge, described, inputType);
  }

  /** A procedure that can be called. */
  record Bound(Bridge bridge, Json described, StructType input) implements BoundProcedure {
    @Override
    public String name() {
      return described.of("name").text();
    }

    @Override
    public String description() {
      return described.of("description").text();
    }

    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public ProcedureParameter[] parameters() {
      Json parameters = described.of("parameters");
      ProcedureParameter[] made = new ProcedureParameter[parameters.size()];
      for (int i = 0; i < made.length; i++) {
        Json parameter = parameters.at(i);
        String name = parameter.of("name").text();
        ProcedureParameter.Builder builder = ProcedureParameter.in(name, type(name, parameter.of("types")));
        made[i] = parameter.of("required").flag() ? builder.build() : builder.defaultValue("NULL").build();
      }
      return made;
    }

    /** The type of a parameter that takes several: that of the argument that is given. */
    private DataType type(String name, Json types) {
      DataType first = DataType.fromJson(types.at(0).text());
      for (int i = 1; i < types.size(); i++) {
        DataType other = DataType.fromJson(types.at(i).text());
        for (StructField argument : input.fields()) {
          boolean same = argument.name().equalsIgnoreCase(name);
          if (same && argument.dataType().getClass().equals(other.getClass())) return other;
        }
      }
      return first;
    }

    @Override
    public Iterator<Scan> call(InternalRow input) {
      Map<String, Object> arguments = new LinkedHashMap<>();
      ProcedureParameter[] parameters = parameters();
      for (int i = 0; i < parameters.length; i++) {
        DataType type = parameters[i].dataType();
        if (!input.isNullAt(i)) arguments.put(parameters[i].name(), plain(input.get(i, type), type));
      }
      Map<String, Object> request = new LinkedHashMap<>();
      request.put("name", name());
      request.put("arguments", arguments);
      @SuppressWarnings("unchecked")
      Dataset<Row> rows = (Dataset<Row>) bridge.fetch("call", request);
      return List.<Scan>of(new Answer(rows)).iterator();
    }

    /** A value of Spark's as JSON takes it; times are microseconds. */
    private static Object plain(Object value, DataType type) {
      if (value instanceof ArrayData array && type instanceof ArrayType list) {
        List<Object> items = new ArrayList<>();
        for (int i = 0; i < array.numElements(); i++) {
          items.add(array.isNullAt(i) ? null : plain(array.get(i, list.elementType()), list.elementType()));
        }
        return items;
      }
      if (value instanceof MapData map && type instanceof MapType pairs) {
        List<?> keys = (List<?>) plain(map.keyArray(), new ArrayType(pairs.keyType(), false));
        List<?> values = (List<?>) plain(map.valueArray(), new ArrayType(pairs.valueType(), true));
        Map<Object, Object> items = new LinkedHashMap<>();
        for (int i = 0; i < keys.size(); i++) items.put(keys.get(i), values.get(i));
        return items;
      }
      return value instanceof Number || value instanceof Boolean ? value : value.toString();
    }
  }

  /** Rows that are there already. */
  static class Answer implements LocalScan {
    private final StructType schema;
    private final InternalRow[] rows;

    Answer(Dataset<Row> rows) {
      this.schema = rows.schema();
      this.rows = ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().executedPlan().executeCollect();
    }

    @Override
    public StructType readSchema() {
      return schema;
    }

    @Override
    public InternalRow[] rows() {
      return rows;
    }
  }
}
