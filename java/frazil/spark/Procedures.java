package frazil.spark;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** CALL: the arguments go to Python by name, its answer comes back as rows. */
class Procedures implements UnboundProcedure, BoundProcedure {
  private final Bridge bridge;
  private final Json described;

  Procedures(Bridge bridge, Json described) {
    this.bridge = bridge;
    this.described = described;
  }

  public String name() {
    return described.of("name").text();
  }

  public String description() {
    return described.of("description").text();
  }

  public BoundProcedure bind(StructType inputType) {
    return this;
  }

  public boolean isDeterministic() {
    return false;
  }

  public ProcedureParameter[] parameters() {
    Json given = described.of("parameters");
    ProcedureParameter[] made = new ProcedureParameter[given.size()];
    for (int i = 0; i < made.length; i++) {
      ProcedureParameter.Builder builder =
          ProcedureParameter.in(given.at(i).of("name").text(), DataType.fromJson(given.at(i).of("type").text()));
      made[i] = given.at(i).of("required").flag() ? builder.build() : builder.defaultValue("NULL").build();
    }
    return made;
  }

  public Iterator call(InternalRow input) {
    Map request = new LinkedHashMap();
    request.put("name", name());
    Map arguments = new LinkedHashMap();
    request.put("arguments", arguments);
    ProcedureParameter[] parameters = parameters();
    for (int i = 0; i < parameters.length; i++) {
      if (!input.isNullAt(i)) {
        arguments.put(parameters[i].name(), input.get(i, parameters[i].dataType()).toString());
      }
    }
    Dataset rows = (Dataset) bridge.fetch("call", request);
    return Collections.singletonList(new Answer(rows)).iterator();
  }

  /** Rows that are there already. */
  static class Answer implements LocalScan {
    private final StructType schema;
    private final InternalRow[] rows;

    Answer(Dataset rows) {
      this.schema = rows.schema();
      this.rows = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().executedPlan().executeCollect();
    }

    public StructType readSchema() {
      return schema;
    }

    public InternalRow[] rows() {
      return rows;
    }
  }
}
