/*
 * Licensed under the Apache License, Version 2.0; see the LICENSE file at the root of the project.
 */
package org.apache.iceberg;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.DVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.encryption.EncryptionKeyMetadata;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;

/**
 * Writes tables that no SQL engine in reach can write: equality deletes, chosen positions, types Spark lacks.
 *
 * <p>Tables are kept by directory. Every operation answers with the metadata file and the snapshot it made.
 */
class OracleWrites {
  private static final HadoopTables TABLES = new HadoopTables(new Configuration());

  private OracleWrites() {}

  static JsonNode create(JsonNode request) {
    Schema schema = SchemaParser.fromJson(request.get("schema").toString());
    PartitionSpec spec =
        request.hasNonNull("spec")
            ? PartitionSpecParser.fromJson(schema, request.get("spec").toString())
            : PartitionSpec.unpartitioned();
    Map<String, String> properties = new HashMap<>();
    request
        .path("properties")
        .fields()
        .forEachRemaining(property -> properties.put(property.getKey(), property.getValue().asText()));
    return state(TABLES.create(schema, spec, properties, request.get("location").asText()));
  }

  static JsonNode append(JsonNode request) throws IOException {
    Table table = load(request);
    GenericFileWriterFactory writers =
        new GenericFileWriterFactory.Builder(table)
            .dataSchema(table.schema())
            .dataFileFormat(format(request))
            .build();
    AppendFiles append = table.newFastAppend();
    for (Map.Entry<StructLike, List<Record>> group : byPartition(table, table.spec(), rows(request, table)).entrySet()) {
      try (DataWriter<Record> writer =
          writers.newDataWriter(output(table, format(request)), table.spec(), group.getKey())) {
        group.getValue().forEach(writer::write);
        writer.close();
        append.appendFile(writer.toDataFile());
      }
    }
    append.commit();
    return state(table);
  }

  /** Deletes rows equal to the given ones in the given columns; within a spec's partitions, or everywhere by an unpartitioned spec. */
  static JsonNode deleteEqual(JsonNode request) throws IOException {
    Table table = load(request);
    int[] ids = new int[request.get("equality_ids").size()];
    List<Integer> selected = new ArrayList<>();
    for (int i = 0; i < ids.length; i += 1) {
      ids[i] = request.get("equality_ids").get(i).asInt();
      selected.add(ids[i]);
    }
    Schema keys = TypeUtil.select(table.schema(), new java.util.HashSet<>(selected));
    PartitionSpec spec =
        request.hasNonNull("spec_id") ? table.specs().get(request.get("spec_id").asInt()) : table.spec();
    GenericFileWriterFactory writers =
        new GenericFileWriterFactory.Builder(table)
            .deleteFileFormat(format(request))
            .equalityFieldIds(ids)
            .equalityDeleteRowSchema(keys)
            .build();
    RowDelta delta = table.newRowDelta();
    for (Map.Entry<StructLike, List<Record>> group : byPartition(table, spec, rows(request, table)).entrySet()) {
      try (EqualityDeleteWriter<Record> writer =
          writers.newEqualityDeleteWriter(output(table, format(request)), spec, group.getKey())) {
        for (Record row : group.getValue()) {
          writer.write(narrowed(row, keys));
        }
        writer.close();
        delta.addDeletes(writer.toDeleteFile());
      }
    }
    delta.commit();
    return state(table);
  }

  private static Record narrowed(Record row, Schema keys) {
    Record narrow = org.apache.iceberg.data.GenericRecord.create(keys);
    keys.columns().forEach(column -> narrow.setField(column.name(), row.getField(column.name())));
    return narrow;
  }

  /**
   * Deletes positions of data files: a position delete file per data file in v2, deletion vectors in one Puffin file in v3.
   */
  static JsonNode deletePositions(JsonNode request) throws IOException {
    Table table = load(request);
    Map<String, DataFile> files = dataFiles(table);
    RowDelta delta = table.newRowDelta();
    if (TableUtil.formatVersion(table) >= 3) {
      OutputFileFactory outputs =
          OutputFileFactory.builderFor(table, 1, 1).format(FileFormat.PUFFIN).build();
      DVFileWriter writer = new BaseDVFileWriter(outputs, path -> null);
      for (JsonNode item : request.get("deletes")) {
        DataFile file = files.get(item.get("location").asText());
        PartitionSpec spec = table.specs().get(file.specId());
        item.get("positions").forEach(
            position -> writer.delete(file.location(), position.asLong(), spec, file.partition()));
      }
      writer.close();
      writer.result().deleteFiles().forEach(delta::addDeletes);
    } else {
      GenericFileWriterFactory writers =
          new GenericFileWriterFactory.Builder(table).deleteFileFormat(format(request)).build();
      for (JsonNode item : request.get("deletes")) {
        DataFile file = files.get(item.get("location").asText());
        PartitionSpec spec = table.specs().get(file.specId());
        try (PositionDeleteWriter<Record> writer =
            writers.newPositionDeleteWriter(output(table, format(request)), spec, file.partition())) {
          PositionDelete<Record> delete = PositionDelete.create();
          item.get("positions").forEach(
              position -> writer.write(delete.set(file.location(), position.asLong())));
          writer.close();
          delta.addDeletes(writer.toDeleteFile());
        }
      }
    }
    delta.commit();
    return state(table);
  }

  /** Adds an identity partition field. */
  static JsonNode partitionBy(JsonNode request) {
    Table table = load(request);
    table.updateSpec().addField(request.get("column").asText()).commit();
    return state(table);
  }

  /** Adds a primitive column; with a default, rows written before have that value. */
  static JsonNode addColumn(JsonNode request) {
    Table table = load(request);
    Type type = Types.fromTypeName(request.get("type").asText());
    UpdateSchema update = table.updateSchema();
    if (request.hasNonNull("default")) {
      Object value = SingleValueParser.fromJson(type, request.get("default"));
      update.addColumn(request.get("name").asText(), type, Expressions.lit(value).to(type));
    } else {
      update.addColumn(request.get("name").asText(), type);
    }
    update.commit();
    return state(table);
  }

  private static Map<String, DataFile> dataFiles(Table table) throws IOException {
    Map<String, DataFile> files = new HashMap<>();
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      tasks.forEach(task -> files.put(task.file().location(), task.file()));
    }
    return files;
  }

  private static Table load(JsonNode request) {
    return TABLES.load(request.get("location").asText());
  }

  private static List<Record> rows(JsonNode request, Table table) {
    List<Record> rows = new ArrayList<>();
    request.get("rows").forEach(row -> rows.add(OracleValues.record(table.schema().asStruct(), row)));
    return rows;
  }

  private static Map<StructLike, List<Record>> byPartition(Table table, PartitionSpec spec, List<Record> rows) {
    Map<StructLike, List<Record>> groups = new LinkedHashMap<>();
    if (spec.isUnpartitioned()) {
      groups.put(null, rows);
      return groups;
    }
    PartitionKey key = new PartitionKey(spec, table.schema());
    InternalRecordWrapper wrapper = new InternalRecordWrapper(table.schema().asStruct());
    for (Record row : rows) {
      key.partition(wrapper.wrap(row));
      groups.computeIfAbsent(key.copy(), ignored -> new ArrayList<>()).add(row);
    }
    return groups;
  }

  private static FileFormat format(JsonNode request) {
    return FileFormat.fromString(request.path("file_format").asText("parquet").toUpperCase(Locale.ROOT));
  }

  private static EncryptedOutputFile output(Table table, FileFormat format) {
    String name = UUID.randomUUID() + "." + format.name().toLowerCase(Locale.ROOT);
    return EncryptedFiles.encryptedOutput(
        table.io().newOutputFile(table.locationProvider().newDataLocation(name)),
        EncryptionKeyMetadata.EMPTY);
  }

  private static ObjectNode state(Table table) {
    table.refresh();
    TableMetadata metadata = ((HasTableOperations) table).operations().current();
    ObjectNode node = OracleServer.JSON.createObjectNode();
    node.put("metadata_location", metadata.metadataFileLocation());
    Snapshot current = table.currentSnapshot();
    node.put("snapshot_id", current == null ? null : current.snapshotId());
    return node;
  }
}
