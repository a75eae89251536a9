/*
 * Licensed under the Apache License, Version 2.0; see the LICENSE file at the root of the project.
 */
package org.apache.iceberg;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.SnapshotUtil;

/** Reads tables, given by their metadata file, with Iceberg's own scan and generic reader. */
class OracleTables {
  private OracleTables() {}

  static Table open(JsonNode request) {
    String location = request.get("metadata_location").asText();
    return new BaseTable(new StaticTableOperations(location, OracleManifests.IO), location);
  }

  static JsonNode describe(JsonNode request) throws IOException {
    Table table = open(request);
    ObjectNode node = OracleServer.JSON.createObjectNode();
    node.put("format_version", TableUtil.formatVersion(table));
    node.put("location", table.location());
    Snapshot current = table.currentSnapshot();
    node.put("current_snapshot_id", current == null ? null : current.snapshotId());
    node.set("schema", OracleServer.JSON.readTree(SchemaParser.toJson(table.schema())));
    ArrayNode snapshots = node.putArray("snapshots");
    for (Snapshot snapshot : table.snapshots()) {
      ObjectNode shown = snapshots.addObject();
      shown.put("snapshot_id", snapshot.snapshotId());
      shown.put("parent_snapshot_id", snapshot.parentId());
      shown.put("sequence_number", snapshot.sequenceNumber());
      shown.put("operation", snapshot.operation());
      shown.set("summary", OracleServer.JSON.valueToTree(snapshot.summary()));
    }
    ObjectNode refs = node.putObject("refs");
    for (Map.Entry<String, SnapshotRef> ref : table.refs().entrySet()) {
      refs.put(ref.getKey(), ref.getValue().snapshotId());
    }
    return node;
  }

  /** Rows of a snapshot (the current one unless told), in that snapshot's schema, which is part of the answer. */
  static JsonNode rows(JsonNode request) throws IOException {
    Table table = open(request);
    Schema schema = table.schema();
    IcebergGenerics.ScanBuilder scan = IcebergGenerics.read(table);
    if (request.hasNonNull("snapshot_id")) {
      long snapshotId = request.get("snapshot_id").asLong();
      schema = SnapshotUtil.schemaFor(table, snapshotId);
      scan = scan.useSnapshot(snapshotId);
    }
    if (request.path("row_lineage").asBoolean(false)) {
      schema = withLineage(schema);
    }
    scan = scan.project(schema);
    if (request.hasNonNull("filter")) {
      scan = scan.where(ExpressionParser.fromJson(request.get("filter").toString(), schema));
    }
    ObjectNode node = OracleServer.JSON.createObjectNode();
    node.set("schema", OracleServer.JSON.readTree(SchemaParser.toJson(schema)));
    ArrayNode rows = node.putArray("rows");
    if (table.currentSnapshot() == null && !request.hasNonNull("snapshot_id")) {
      return node;
    }
    try (CloseableIterable<Record> records = scan.build()) {
      for (Record record : records) {
        rows.add(OracleValues.encode(schema.asStruct(), record));
      }
    }
    return node;
  }

  private static Schema withLineage(Schema schema) {
    List<Types.NestedField> fields = new ArrayList<>(schema.columns());
    fields.add(MetadataColumns.ROW_ID);
    fields.add(MetadataColumns.LAST_UPDATED_SEQUENCE_NUMBER);
    return new Schema(schema.schemaId(), fields);
  }

  /** Data files of a snapshot as the planner gives them, each with the deletes that apply to it. */
  static JsonNode files(JsonNode request) throws IOException {
    Table table = open(request);
    TableScan scan = table.newScan();
    if (request.hasNonNull("snapshot_id")) {
      scan = scan.useSnapshot(request.get("snapshot_id").asLong());
    }
    if (request.hasNonNull("filter")) {
      scan = scan.filter(ExpressionParser.fromJson(request.get("filter").toString(), table.schema()));
    }
    ArrayNode files = OracleServer.JSON.createArrayNode();
    try (CloseableIterable<FileScanTask> tasks = scan.planFiles()) {
      for (FileScanTask task : tasks) {
        ObjectNode shown = files.addObject();
        shown.put("location", task.file().location());
        shown.put("record_count", task.file().recordCount());
        shown.put("spec_id", task.file().specId());
        shown.put("sequence_number", task.file().dataSequenceNumber());
        shown.put("first_row_id", task.file().firstRowId());
        ArrayNode deletes = shown.putArray("deletes");
        for (DeleteFile delete : task.deletes()) {
          ObjectNode deleteNode = deletes.addObject();
          deleteNode.put("location", delete.location());
          deleteNode.put("content", delete.content().id());
          deleteNode.put("format", delete.format().name());
          deleteNode.put("content_offset", delete.contentOffset());
        }
      }
    }
    return files;
  }
}
