/*
 * Licensed under the Apache License, Version 2.0; see the LICENSE file at the root of the project.
 */
package org.apache.iceberg;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.mumbling.OracleBitmaps;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/** Shows a v4 manifest, root or leaf, as Iceberg's own reader sees it. */
class OracleManifests {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
  static final FileIO IO = new HadoopFileIO(new Configuration());

  private OracleManifests() {}

  /** The content entry's fields as Iceberg declares them, for a table schema, its specs and metrics properties. */
  static JsonNode schema(JsonNode request) {
    Schema table = tableSchema(request);
    Map<Integer, PartitionSpec> specs = specs(request, table);
    Types.StructType stats =
        StatsUtil.statsWriteSchema(table, metrics(request, table));
    return fields(
        TrackedFile.schema(Partitioning.unionPartitionTypes(specs.values()), stats).asStruct());
  }

  private static ArrayNode fields(Types.StructType struct) {
    ArrayNode result = NODES.arrayNode();
    for (Types.NestedField field : struct.fields()) {
      ObjectNode node = result.addObject();
      node.put("id", field.fieldId());
      node.put("name", field.name());
      node.put("required", field.isRequired());
      Type type = field.type();
      if (type.isStructType()) {
        node.set("fields", fields(type.asStructType()));
      } else if (type.isListType()) {
        node.put("element_id", type.asListType().elementId());
        node.put("type", type.asListType().elementType().toString());
      } else {
        node.put("type", type.toString());
      }
    }
    return result;
  }

  static JsonNode read(JsonNode request) throws Exception {
    Schema table = tableSchema(request);
    Map<Integer, PartitionSpec> specs = specs(request, table);
    V4ManifestReader.Builder builder =
        V4ManifestReader.builder(manifest(request), IO, table, specs)
            .tableLocation(request.get("table_location").asText())
            .metricsConfig(metrics(request, table));
    if (!request.path("live_only").asBoolean(false)) {
      builder.includeAll();
    }
    if (request.hasNonNull("filter")) {
      builder.filter(ExpressionParser.fromJson(request.get("filter").toString(), table));
    }
    ArrayNode entries = NODES.arrayNode();
    try (V4ManifestReader reader = builder.build()) {
      for (TrackedFile file : reader) {
        entries.add(entry(file));
      }
    }
    return entries;
  }

  private static ManifestFile manifest(JsonNode request) {
    long sequenceNumber = request.get("sequence_number").asLong();
    Tracking tracking =
        new TrackingStruct(
            EntryStatus.ADDED,
            request.get("snapshot_id").asLong(),
            sequenceNumber,
            sequenceNumber,
            null,
            request.hasNonNull("first_row_id") ? request.get("first_row_id").asLong() : null,
            null,
            null);
    ManifestInfo info =
        ManifestInfoStruct.builder()
            .addedFilesCount(0)
            .existingFilesCount(0)
            .deletedFilesCount(0)
            .replacedFilesCount(0)
            .addedRowsCount(0)
            .existingRowsCount(0)
            .deletedRowsCount(0)
            .replacedRowsCount(0)
            .minSequenceNumber(0)
            .build();
    return TrackedFileAdapters.asManifestFile(
        new TrackedFileStruct(
            tracking,
            FileContent.DATA_MANIFEST,
            4,
            request.get("path").asText(),
            FileFormat.PARQUET,
            0,
            request.get("length").asLong(),
            null,
            null,
            null,
            null,
            null,
            info,
            null,
            null,
            null));
  }

  private static MetricsConfig metrics(JsonNode request, Schema table) {
    Map<String, String> properties = new HashMap<>();
    request
        .path("properties")
        .fields()
        .forEachRemaining(property -> properties.put(property.getKey(), property.getValue().asText()));
    return MetricsConfig.from(properties, table, null);
  }

  private static Schema tableSchema(JsonNode request) {
    return SchemaParser.fromJson(request.get("schema").toString());
  }

  private static Map<Integer, PartitionSpec> specs(JsonNode request, Schema table) {
    Map<Integer, PartitionSpec> specs = new HashMap<>();
    for (JsonNode json : request.get("specs")) {
      PartitionSpec spec = PartitionSpecParser.fromJson(table, json.toString());
      specs.put(spec.specId(), spec);
    }
    return specs;
  }

  private static ObjectNode entry(TrackedFile file) {
    ObjectNode entry = NODES.objectNode();
    entry.set("tracking", tracking(file.tracking()));
    entry.put("content_type", file.contentType().id());
    entry.put("format_version", file.formatVersion());
    entry.put("location", file.location());
    entry.put("file_format", file.fileFormat().name().toLowerCase(java.util.Locale.ROOT));
    entry.put("record_count", file.recordCount());
    entry.put("file_size_in_bytes", file.fileSizeInBytes());
    entry.put("spec_id", file.specId());
    entry.set("partition", partition(file.partition()));
    entry.set("content_stats", stats(file.contentStats()));
    entry.put("sort_order_id", file.sortOrderId());
    entry.set("deletion_vector", deletionVector(file.deletionVector()));
    entry.set("manifest_info", manifestInfo(file.manifestInfo()));
    entry.put("key_metadata", hex(file.keyMetadata()));
    entry.set("split_offsets", OracleServer.JSON.valueToTree(file.splitOffsets()));
    entry.set("equality_ids", OracleServer.JSON.valueToTree(file.equalityIds()));
    return entry;
  }

  private static ObjectNode tracking(Tracking tracking) {
    ObjectNode node = NODES.objectNode();
    node.put("status", tracking.status().id());
    node.put("snapshot_id", tracking.snapshotId());
    node.put("sequence_number", tracking.dataSequenceNumber());
    node.put("file_sequence_number", tracking.fileSequenceNumber());
    node.put("dv_snapshot_id", tracking.dvSnapshotId());
    node.put("first_row_id", tracking.firstRowId());
    node.set("deleted_positions", OracleBitmaps.positions(tracking.deletedPositions()));
    node.set("replaced_positions", OracleBitmaps.positions(tracking.replacedPositions()));
    node.put("manifest_pos", tracking.manifestPos());
    return node;
  }

  private static JsonNode partition(StructLike partition) {
    if (partition == null) {
      return NODES.nullNode();
    }
    ObjectNode node = NODES.objectNode();
    List<Types.NestedField> fields = ((PartitionData) partition).getPartitionType().fields();
    for (int i = 0; i < fields.size(); i += 1) {
      Types.NestedField field = fields.get(i);
      node.set(
          Integer.toString(field.fieldId()),
          OracleValues.encode(field.type(), partition.get(i, Object.class)));
    }
    return node;
  }

  private static JsonNode stats(ContentStats stats) {
    if (stats == null) {
      return NODES.nullNode();
    }
    ObjectNode node = NODES.objectNode();
    for (FieldStats<?> field : stats.fieldStats()) {
      if (field != null) {
        node.set(Integer.toString(field.fieldId()), fieldStats(field));
      }
    }
    return node;
  }

  private static ObjectNode fieldStats(FieldStats<?> field) {
    ObjectNode node = NODES.objectNode();
    node.set("lower_bound", bound(field, StatsUtil.LOWER_BOUND_NAME, field.lowerBound()));
    node.set("upper_bound", bound(field, StatsUtil.UPPER_BOUND_NAME, field.upperBound()));
    node.put("tight_bounds", field.tightBounds());
    node.put("value_count", field.hasValueCount() ? field.valueCount() : null);
    node.put("null_value_count", field.hasNullValueCount() ? field.nullValueCount() : null);
    node.put("nan_value_count", field.hasNanValueCount() ? field.nanValueCount() : null);
    node.put("avg_value_size_in_bytes", field.avgValueSizeInBytes());
    return node;
  }

  private static JsonNode bound(FieldStats<?> field, String name, Object value) {
    Types.NestedField declared = field.type().field(name);
    return declared == null ? NODES.nullNode() : OracleValues.encode(declared.type(), value);
  }

  private static JsonNode deletionVector(DeletionVector vector) {
    if (vector == null) {
      return NODES.nullNode();
    }
    ObjectNode node = NODES.objectNode();
    node.put("location", vector.location());
    node.put("offset", vector.offset());
    node.put("size_in_bytes", vector.sizeInBytes());
    node.put("cardinality", vector.cardinality());
    node.put("key_metadata", hex(vector.keyMetadata()));
    return node;
  }

  private static JsonNode manifestInfo(ManifestInfo info) {
    if (info == null) {
      return NODES.nullNode();
    }
    ObjectNode node = NODES.objectNode();
    node.put("added_files_count", info.addedFilesCount());
    node.put("existing_files_count", info.existingFilesCount());
    node.put("deleted_files_count", info.deletedFilesCount());
    node.put("replaced_files_count", info.replacedFilesCount());
    node.put("added_rows_count", info.addedRowsCount());
    node.put("existing_rows_count", info.existingRowsCount());
    node.put("deleted_rows_count", info.deletedRowsCount());
    node.put("replaced_rows_count", info.replacedRowsCount());
    node.put("min_sequence_number", info.minSequenceNumber());
    node.set("dv", OracleBitmaps.positions(info.manifestDeletionVector()));
    return node;
  }

  private static String hex(ByteBuffer buffer) {
    return buffer == null ? null : OracleValues.hex(buffer);
  }
}
