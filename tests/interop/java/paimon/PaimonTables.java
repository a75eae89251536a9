import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryRowWriter;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.AppendDeleteFileMaintainer;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.disk.IOManagerImpl;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.system.AuditLogTable;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.LocalZonedTimestampType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.types.TimestampType;

/**
 * Writes small Paimon tables with Paimon's own Java API and, for every snapshot, the rows that
 * Paimon itself reads back: {@code <out>/<table>/<branch>/<snapshot>.jsonl}.
 */
public final class PaimonTables {
    private final Catalog catalog;
    private final Path warehouse;
    private final Path expected;
    private final String spill;

    private PaimonTables(Path warehouse, Path expected) throws Exception {
        this.warehouse = warehouse;
        this.expected = expected;
        this.spill = Files.createTempDirectory("paimon-spill").toString();
        Options options = new Options();
        options.set("warehouse", warehouse.toString());
        this.catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
        catalog.createDatabase("db", true);
    }

    public static void main(String[] args) throws Exception {
        PaimonTables tables = new PaimonTables(Paths.get(args[0]), Paths.get(args[1]));
        tables.appendTypes();
        tables.appendNested();
        tables.appendPartitions();
        tables.appendBucketed();
        tables.appendEvolved();
        tables.appendFormats();
        tables.appendVectors("append_dv32", "false");
        tables.appendVectors("append_dv64", "true");
        tables.appendExternal();
        tables.appendRowTracking();
        tables.appendOrcManifests();
        tables.appendOddTypes();
        tables.keyedCompacted();
        tables.keyedLevelZero();
        tables.keyedVectors("pk_dv32", "false");
        tables.keyedVectors("pk_dv64", "true");
        tables.keyedFirstRow();
        tables.keyedMergeEngines();
        tables.keyedPostpone();
        tables.keyedChangelog();
        tables.appendIndexed("append_indexed", "1 mb");
        tables.appendIndexed("append_indexed_beside", "1 b");
        Files.createFile(Paths.get(args[2])); // complete, however the process ends
    }

    private Identifier id(String name) {
        return Identifier.create("db", name);
    }

    private FileStoreTable table(String name) throws Exception {
        return (FileStoreTable) catalog.getTable(id(name));
    }

    private static Object s(String text) {
        return text == null ? null : BinaryString.fromString(text);
    }

    private static Decimal dec(String text, int precision, int scale) {
        return Decimal.fromBigDecimal(new java.math.BigDecimal(text), precision, scale);
    }

    private interface Writes {
        void to(BatchTableWrite write) throws Exception;
    }

    private void write(Table table, Writes writes) throws Exception {
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(new IOManagerImpl(spill));
            writes.to(write);
            commit.commit(write.prepareCommit());
        }
    }

    private void rows(Table table, GenericRow... rows) throws Exception {
        write(table, write -> {
            for (GenericRow row : rows) {
                write.write(row);
            }
        });
    }

    private void overwrite(Table table, Map<String, String> partition, GenericRow... rows) throws Exception {
        BatchWriteBuilder builder = table.newBatchWriteBuilder().withOverwrite(partition);
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            for (GenericRow row : rows) {
                write.write(row);
            }
            commit.commit(write.prepareCommit());
        }
    }

    private void compact(Table table, BinaryRow partition, int... buckets) throws Exception {
        write(table, write -> {
            for (int bucket : buckets) {
                write.compact(partition, bucket, true);
            }
        });
    }

    // ---------------------------------------------------------------- append-only tables

    private void appendTypes() throws Exception {
        Schema schema = Schema.newBuilder()
                .column("b", DataTypes.BOOLEAN()).column("t", DataTypes.TINYINT())
                .column("sm", DataTypes.SMALLINT()).column("i", DataTypes.INT().notNull())
                .column("l", DataTypes.BIGINT()).column("f", DataTypes.FLOAT())
                .column("d", DataTypes.DOUBLE()).column("dc", DataTypes.DECIMAL(9, 2))
                .column("dm", DataTypes.DECIMAL(18, 4)).column("db", DataTypes.DECIMAL(38, 10))
                .column("c", DataTypes.CHAR(4)).column("v", DataTypes.VARCHAR(40))
                .column("s", DataTypes.STRING()).column("bin", DataTypes.BINARY(3))
                .column("by", DataTypes.BYTES()).column("dt", DataTypes.DATE())
                .column("t0", DataTypes.TIMESTAMP(0)).column("t3", DataTypes.TIMESTAMP(3))
                .column("t6", DataTypes.TIMESTAMP(6)).column("z3", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(3))
                .column("z6", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(6))
                .build();
        catalog.createTable(id("append_types"), schema, false);
        FileStoreTable table = table("append_types");
        for (int part = 0; part < 2; part++) {
            GenericRow[] rows = new GenericRow[7];
            for (int i = 0; i < 6; i++) {
                int n = part * 6 + i - 3;
                Timestamp millis = Timestamp.fromEpochMillis(1704164646678L + n * 1000L);
                Timestamp micros = Timestamp.fromEpochMillis(-1L - n, 999000);
                rows[i] = GenericRow.of(n % 2 == 0, (byte) n, (short) (n * 300), n, n * 10000000000L,
                        n * 1.5f, n * -2.25, dec(n + ".25", 9, 2), dec(n + "00000000.0625", 18, 4),
                        dec(n + "2345678901234567890.0000000001", 38, 10), s("ab" + (n + 3)), s("var" + n),
                        s("Two roads diverged in a yellow wood " + n), new byte[] {1, (byte) n, 3},
                        ("bytes " + n + " and a tail").getBytes(StandardCharsets.UTF_8), 19723 + n,
                        Timestamp.fromEpochMillis(1704164646000L + n * 1000L), millis, micros, millis, micros);
            }
            rows[6] = new GenericRow(21);
            rows[6].setField(3, 100 + part);
            rows(table, rows);
        }
        dump("append_types");
    }

    private void appendNested() throws Exception {
        Schema schema = Schema.newBuilder()
                .column("k", DataTypes.INT())
                .column("a", DataTypes.ARRAY(DataTypes.STRING()))
                .column("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()))
                .column("r", DataTypes.ROW(DataTypes.FIELD(0, "x", DataTypes.INT()), DataTypes.FIELD(1, "y", DataTypes.STRING())))
                .column("aa", DataTypes.ARRAY(DataTypes.ARRAY(DataTypes.INT())))
                .build();
        catalog.createTable(id("append_nested"), schema, false);
        Map<Object, Object> map = new LinkedHashMap<>();
        map.put(s("one"), 1);
        map.put(s("two"), null);
        rows(table("append_nested"),
                GenericRow.of(1, new GenericArray(new Object[] {s("a"), null, s("c")}), new GenericMap(map),
                        GenericRow.of(5, s("five")),
                        new GenericArray(new Object[] {new GenericArray(new int[] {1, 2}), new GenericArray(new int[] {})})),
                GenericRow.of(2, null, null, null, null));
        dump("append_nested");
    }

    private void appendPartitions() throws Exception {
        Schema schema = Schema.newBuilder()
                .column("v", DataTypes.INT()).column("s", DataTypes.STRING()).column("d", DataTypes.DATE())
                .column("i", DataTypes.INT()).column("b", DataTypes.BOOLEAN())
                .partitionKeys("s", "d", "b").build();
        catalog.createTable(id("append_partitions"), schema, false);
        FileStoreTable table = table("append_partitions");
        rows(table, GenericRow.of(1, s("plain"), 19723, 1, true), GenericRow.of(2, null, 19723, 2, false),
                GenericRow.of(3, s(""), null, 3, null), GenericRow.of(4, s("p/with %=long and odd: 'x' \u00e9\u6f22"), -1, 4, true));
        table.createTag("first");
        rows(table, GenericRow.of(5, s("  "), 0, 5, true), GenericRow.of(6, s("plain"), 19723, 6, true));
        table.createBranch("side", "first");
        rows(table.switchToBranch("side"), GenericRow.of(70, s("side"), 5, 7, false));
        overwrite(table, Collections.singletonMap("s", "plain"), GenericRow.of(8, s("plain"), 1, 8, false));
        dump("append_partitions");
        dumpBranch("append_partitions", "side");

        Object[][] cases = {
            {"tinyint", DataTypes.TINYINT(), (byte) -3, (byte) 4}, {"smallint", DataTypes.SMALLINT(), (short) 300, (short) -1},
            {"bigint", DataTypes.BIGINT(), 10000000000L, -1L}, {"float", DataTypes.FLOAT(), 1.5f, -0.1f},
            {"double", DataTypes.DOUBLE(), 1e10, 0.1}, {"decimal", DataTypes.DECIMAL(10, 2), dec("1.25", 10, 2), dec("-3.50", 10, 2)},
            {"bigdecimal", DataTypes.DECIMAL(30, 5), dec("12345678901234567891.12345", 30, 5), dec("0.00001", 30, 5)},
            {"char", DataTypes.CHAR(3), s("abc"), s("x#y")},
            {"timestamp", DataTypes.TIMESTAMP(3), Timestamp.fromEpochMillis(1704067200000L), Timestamp.fromEpochMillis(1704164646678L)},
            {"micros", DataTypes.TIMESTAMP(6), Timestamp.fromEpochMillis(1704164640000L), Timestamp.fromEpochMillis(1704164646678L, 901000)},
            {"ltz", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(6), Timestamp.fromEpochMillis(1704164640000L), Timestamp.fromEpochMillis(-1L, 999000)},
        };
        for (Object[] one : cases) {
            for (String legacy : new String[] {"true", "false"}) {
                String name = "append_by_" + one[0] + ("true".equals(legacy) ? "" : "_named");
                catalog.createTable(id(name), Schema.newBuilder().column("v", DataTypes.INT())
                        .column("p", (DataType) one[1]).partitionKeys("p").option("partition.legacy-name", legacy).build(), false);
                rows(table(name), GenericRow.of(1, one[2]), GenericRow.of(2, one[3]), GenericRow.of(3, null));
                dump(name);
            }
        }
    }

    private void appendBucketed() throws Exception {
        Schema schema = Schema.newBuilder().column("id", DataTypes.INT()).column("v", DataTypes.STRING())
                .option("bucket", "3").option("bucket-key", "id").build();
        catalog.createTable(id("append_bucketed"), schema, false);
        FileStoreTable table = table("append_bucketed");
        for (int part = 0; part < 3; part++) {
            int base = part * 10;
            rows(table, GenericRow.of(base, s("a")), GenericRow.of(base + 1, s("b")), GenericRow.of(base + 2, s("c")));
        }
        compact(table, BinaryRow.EMPTY_ROW, 0, 1, 2);
        dump("append_bucketed");
    }

    private void appendEvolved() throws Exception {
        Schema schema = Schema.newBuilder().column("id", DataTypes.INT()).column("a", DataTypes.INT())
                .column("b", DataTypes.STRING()).column("f", DataTypes.FLOAT()).column("dc", DataTypes.DECIMAL(5, 2)).build();
        catalog.createTable(id("append_evolved"), schema, false);
        rows(table("append_evolved"), GenericRow.of(1, 10, s("x"), 0.5f, dec("1.25", 5, 2)),
                GenericRow.of(2, 20, s("y"), 1.5f, dec("-1.25", 5, 2)));
        alter("append_evolved", SchemaChange.addColumn("c", DataTypes.STRING(), "added", SchemaChange.Move.first("c")));
        rows(table("append_evolved"), GenericRow.of(s("c3"), 3, 30, s("z"), 2.5f, dec("2.25", 5, 2)));
        alter("append_evolved", SchemaChange.renameColumn("b", "bb"), SchemaChange.updateColumnType("a", DataTypes.BIGINT()),
                SchemaChange.updateColumnType("f", DataTypes.DOUBLE()), SchemaChange.updateColumnType("dc", DataTypes.DECIMAL(12, 2)));
        rows(table("append_evolved"), GenericRow.of(s("c4"), 4, 10000000000L, s("w"), 1e300, dec("9999999999.25", 12, 2)));
        alter("append_evolved", SchemaChange.dropColumn("bb"));
        alter("append_evolved", SchemaChange.addColumn("b", DataTypes.INT()));
        rows(table("append_evolved"), GenericRow.of(s("c5"), 5, 50L, 5.5, dec("5.25", 12, 2), 55));
        dump("append_evolved");

        catalog.createTable(id("append_recast"), Schema.newBuilder().column("id", DataTypes.INT())
                .column("v", DataTypes.STRING()).build(), false);
        rows(table("append_recast"), GenericRow.of(1, s("10")));
        alter("append_recast", SchemaChange.updateColumnType("v", DataTypes.INT()));
        rows(table("append_recast"), GenericRow.of(2, 20));
        dump("append_recast");
    }

    private void alter(String name, SchemaChange... changes) throws Exception {
        catalog.alterTable(id(name), Arrays.asList(changes), false);
    }

    private void appendFormats() throws Exception {
        for (String format : new String[] {"orc", "avro"}) {
            Schema schema = Schema.newBuilder().column("id", DataTypes.INT()).column("s", DataTypes.STRING())
                    .column("d", DataTypes.DATE()).column("t", DataTypes.TIMESTAMP(6)).option("file.format", format).build();
            catalog.createTable(id("append_" + format), schema, false);
            rows(table("append_" + format), GenericRow.of(1, s("one"), 1, Timestamp.fromEpochMillis(1L, 5000)), GenericRow.of(2, null, null, null));
            dump("append_" + format);
        }
    }

    private void appendVectors(String name, String wide) throws Exception {
        Schema schema = Schema.newBuilder().column("id", DataTypes.INT()).column("v", DataTypes.STRING())
                .option("deletion-vectors.enabled", "true").option("deletion-vectors.bitmap64", wide).build();
        catalog.createTable(id(name), schema, false);
        FileStoreTable table = table(name);
        rows(table, GenericRow.of(1, s("a")), GenericRow.of(2, s("b")), GenericRow.of(3, s("c")), GenericRow.of(4, s("d")));
        rows(table, GenericRow.of(5, s("e")), GenericRow.of(6, s("f")));
        delete(table, "true".equals(wide), 0, 1, 3);
        delete(table, "true".equals(wide), 1, 0);
        delete(table, "true".equals(wide), 0, 0);
        dump(name);
    }

    /** Marks rows of the n-th live file as deleted, as a DELETE statement on an append table does. */
    private void delete(FileStoreTable table, boolean wide, int nth, int... positions) throws Exception {
        List<DataFileMeta> files = new ArrayList<>();
        for (Split split : table.newReadBuilder().newScan().plan().splits()) {
            files.addAll(((DataSplit) split).dataFiles());
        }
        files.sort((a, b) -> Long.compare(a.minSequenceNumber(), b.minSequenceNumber()));
        AppendDeleteFileMaintainer maintainer = BaseAppendDeleteFileMaintainer.forUnawareAppend(
                table.store().newIndexFileHandler(), table.snapshotManager().latestSnapshot(), BinaryRow.EMPTY_ROW);
        DeletionVector vector = wide ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
        for (int position : positions) {
            vector.delete(position);
        }
        maintainer.notifyNewDeletionVector(files.get(nth).fileName(), vector);
        List<IndexFileMeta> added = new ArrayList<>();
        List<IndexFileMeta> removed = new ArrayList<>();
        for (IndexManifestEntry entry : maintainer.persist()) {
            (entry.kind() == FileKind.ADD ? added : removed).add(entry.indexFile());
        }
        CommitMessage message = new CommitMessageImpl(BinaryRow.EMPTY_ROW, 0, table.coreOptions().bucket(),
                new DataIncrement(Collections.emptyList(), Collections.emptyList(), Collections.emptyList(), added, removed),
                new CompactIncrement(Collections.emptyList(), Collections.emptyList(), Collections.emptyList()));
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.commit(Collections.singletonList(message));
        }
    }

    private void appendExternal() throws Exception {
        Path outside = warehouse.resolveSibling("outside");
        Files.createDirectories(outside);
        Schema schema = Schema.newBuilder().column("id", DataTypes.INT()).column("p", DataTypes.STRING()).partitionKeys("p")
                .option("data-file.external-paths", "file://" + outside.toAbsolutePath())
                .option("data-file.external-paths.strategy", "round-robin").build();
        catalog.createTable(id("append_external"), schema, false);
        rows(table("append_external"), GenericRow.of(1, s("a")), GenericRow.of(2, s("b b")));
        dump("append_external");
    }

    private void appendRowTracking() throws Exception {
        Schema schema = Schema.newBuilder().column("id", DataTypes.INT()).column("v", DataTypes.STRING())
                .option("row-tracking.enabled", "true").build();
        catalog.createTable(id("append_rowtracking"), schema, false);
        FileStoreTable table = table("append_rowtracking");
        rows(table, GenericRow.of(1, s("a")), GenericRow.of(2, s("b")));
        rows(table, GenericRow.of(3, s("c")));
        dump("append_rowtracking");
    }

    private void appendOrcManifests() throws Exception {
        Schema schema = Schema.newBuilder().column("id", DataTypes.INT()).column("p", DataTypes.STRING()).partitionKeys("p")
                .option("manifest.format", "orc").option("deletion-vectors.enabled", "true").build();
        catalog.createTable(id("append_orc_manifests"), schema, false);
        FileStoreTable table = table("append_orc_manifests");
        rows(table, GenericRow.of(1, s("a")), GenericRow.of(2, s("b")), GenericRow.of(3, null));
        rows(table, GenericRow.of(4, s("a")));
        dump("append_orc_manifests");
    }

    private void appendOddTypes() throws Exception {
        Schema schema = Schema.newBuilder().column("id", DataTypes.INT()).column("t9", DataTypes.TIMESTAMP(9))
                .column("tm", DataTypes.TIME(3)).column("v", DataTypes.STRING()).build();
        catalog.createTable(id("append_odd_types"), schema, false);
        rows(table("append_odd_types"), GenericRow.of(1, Timestamp.fromEpochMillis(5, 7), 1000, s("a")), GenericRow.of(2, null, null, s("b")));
        dump("append_odd_types");
    }

    // ---------------------------------------------------------------- primary-key tables

    private Schema.Builder keyed(String... options) {
        Schema.Builder builder = Schema.newBuilder().column("k", DataTypes.INT().notNull()).column("v", DataTypes.STRING())
                .column("n", DataTypes.BIGINT()).primaryKey("k").option("bucket", "2");
        for (int i = 0; i < options.length; i += 2) {
            builder.option(options[i], options[i + 1]);
        }
        return builder;
    }

    private static GenericRow row(RowKind kind, int k, String v, Long n) {
        GenericRow row = GenericRow.of(k, s(v), n);
        row.setRowKind(kind);
        return row;
    }

    private static GenericRow add(int k, String v, long n) {
        return row(RowKind.INSERT, k, v, n);
    }

    private void keyedCompacted() throws Exception {
        Schema schema = Schema.newBuilder().column("p", DataTypes.STRING()).column("k", DataTypes.INT())
                .column("v", DataTypes.STRING()).partitionKeys("p").primaryKey("p", "k").option("bucket", "1").build();
        catalog.createTable(id("pk_compacted"), schema, false);
        FileStoreTable table = table("pk_compacted");
        rows(table, GenericRow.of(s("x"), 1, s("one")), GenericRow.of(s("x"), 2, s("two")), GenericRow.of(s("y"), 1, s("uno")));
        GenericRow gone = GenericRow.of(s("y"), 1, s("uno"));
        gone.setRowKind(RowKind.DELETE);
        rows(table, GenericRow.of(s("x"), 1, s("ONE")), GenericRow.of(s("y"), 2, s("dos")), gone);
        compact(table, partition("x"), 0);
        compact(table, partition("y"), 0);
        dump("pk_compacted");
    }

    private static BinaryRow partition(String value) {
        BinaryRow row = new BinaryRow(1);
        BinaryRowWriter writer = new BinaryRowWriter(row);
        writer.writeString(0, BinaryString.fromString(value));
        writer.complete();
        return row;
    }

    private void keyedLevelZero() throws Exception {
        catalog.createTable(id("pk_level0"), keyed("write-only", "true").build(), false);
        FileStoreTable table = table("pk_level0");
        rows(table, add(1, "a", 1), add(2, "b", 2), add(3, "c", 3), add(4, "d", 4));
        rows(table, add(2, "B", 20), add(5, "e", 5), row(RowKind.DELETE, 3, "c", 3L));
        rows(table, add(3, "again", 30), add(1, "A", 10), row(RowKind.DELETE, 4, "d", 4L));
        dump("pk_level0");

        catalog.createTable(id("pk_sequence"), keyed("write-only", "true", "bucket", "1", "sequence.field", "n").build(), false);
        table = table("pk_sequence");
        rows(table, add(1, "newer", 9), add(2, "b", 2), row(RowKind.INSERT, 3, "null loses", null));
        rows(table, add(1, "older", 1), add(2, "B", 3), add(3, "c", 0));
        dump("pk_sequence");

        Schema wide = Schema.newBuilder().column("p", DataTypes.STRING()).column("k", DataTypes.BIGINT())
                .column("t3", DataTypes.TIMESTAMP(3)).column("t6", DataTypes.TIMESTAMP(6))
                .column("z6", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(6)).column("d", DataTypes.DATE())
                .column("dc", DataTypes.DECIMAL(20, 3)).column("a", DataTypes.ARRAY(DataTypes.INT()))
                .column("sm", DataTypes.SMALLINT()).column("by", DataTypes.BYTES())
                .partitionKeys("p").primaryKey("p", "k").option("bucket", "1").option("write-only", "true").build();
        catalog.createTable(id("pk_level0_types"), wide, false);
        for (int part = 0; part < 2; part++) {
            Timestamp time = Timestamp.fromEpochMillis(1710037800123L + part, 456000);
            rows(table("pk_level0_types"),
                    GenericRow.of(s("x {y}*"), 1L + part, Timestamp.fromEpochMillis(1710037800123L + part), time, time, 19792 + part,
                            dec("12345678901234567." + part + "25", 20, 3), new GenericArray(new int[] {1, part}), (short) part, new byte[] {(byte) part}),
                    GenericRow.of(s("x {y}*"), 2L + part, null, null, null, null, null, null, null, null),
                    GenericRow.of(partitionOf(part), 7L, null, time, null, -1, null, null, (short) 7, null));
        }
        alter("pk_level0_types", SchemaChange.renameColumn("sm", "small"), SchemaChange.addColumn("late", DataTypes.INT()));
        rows(table("pk_level0_types"), GenericRow.of(s("x {y}*"), 2L, null, null, null, 5, null, null, (short) 9, null, 77));
        dump("pk_level0_types");

        catalog.createTable(id("pk_disjoint"), keyed("write-only", "true", "bucket", "1").build(), false);
        table = table("pk_disjoint");
        rows(table, add(1, "a", 1), add(2, "b", 2));
        rows(table, add(10, "c", 3), add(11, "d", 4));
        dump("pk_disjoint");
    }

    private static Object partitionOf(int part) {
        return s(part == 0 ? "plain" : "p/2");
    }

    private void keyedVectors(String name, String wide) throws Exception {
        catalog.createTable(id(name), keyed("deletion-vectors.enabled", "true", "deletion-vectors.bitmap64", wide).build(), false);
        FileStoreTable table = table(name);
        rows(table, add(1, "a", 1), add(2, "b", 2), add(3, "c", 3), add(4, "d", 4), add(5, "e", 5), add(6, "f", 6));
        compact(table, BinaryRow.EMPTY_ROW, 0, 1);
        rows(table, add(2, "B", 20), add(7, "g", 7), row(RowKind.DELETE, 3, "c", 3L));
        rows(table, add(1, "A", 10), add(8, "h", 8));
        dump(name);
    }

    private void keyedFirstRow() throws Exception {
        catalog.createTable(id("pk_first_row"), keyed("merge-engine", "first-row").build(), false);
        FileStoreTable table = table("pk_first_row");
        rows(table, add(1, "a", 1), add(2, "b", 2), add(3, "c", 3));
        compact(table, BinaryRow.EMPTY_ROW, 0, 1);
        rows(table, add(2, "late", 20), add(4, "d", 4));
        compact(table, BinaryRow.EMPTY_ROW, 0, 1);
        dump("pk_first_row");

        catalog.createTable(id("pk_first_row_level0"), keyed("merge-engine", "first-row", "write-only", "true").build(), false);
        table = table("pk_first_row_level0");
        rows(table, add(1, "a", 1), add(2, "b", 2));
        rows(table, add(2, "late", 20), add(3, "c", 3));
        dump("pk_first_row_level0");
    }

    private void keyedMergeEngines() throws Exception {
        catalog.createTable(id("pk_partial"), keyed("merge-engine", "partial-update", "write-only", "true").build(), false);
        rows(table("pk_partial"), row(RowKind.INSERT, 1, "a", null), add(2, "b", 2));
        rows(table("pk_partial"), row(RowKind.INSERT, 1, null, 10L));
        dump("pk_partial");
        catalog.createTable(id("pk_aggregate"), keyed("merge-engine", "aggregation", "fields.n.aggregate-function", "sum", "write-only", "true").build(), false);
        rows(table("pk_aggregate"), add(1, "a", 1), add(2, "b", 2));
        rows(table("pk_aggregate"), add(1, "c", 10));
        dump("pk_aggregate");
        catalog.createTable(id("pk_aggregates"), Schema.newBuilder().column("k", DataTypes.INT().notNull())
                .column("lo", DataTypes.INT()).column("hi", DataTypes.STRING()).column("last", DataTypes.STRING())
                .column("first", DataTypes.STRING()).column("any", DataTypes.BOOLEAN()).column("seq", DataTypes.INT())
                .primaryKey("k").option("bucket", "1").option("write-only", "true").option("merge-engine", "aggregation")
                .option("sequence.field", "seq").option("fields.lo.aggregate-function", "min")
                .option("fields.hi.aggregate-function", "max").option("fields.last.aggregate-function", "last_value")
                .option("fields.first.aggregate-function", "first_non_null_value")
                .option("fields.any.aggregate-function", "bool_or").build(), false);
        rows(table("pk_aggregates"), GenericRow.of(1, 5, s("m"), s("x"), null, false, 3), GenericRow.of(2, 1, null, null, s("p"), null, 1));
        rows(table("pk_aggregates"), GenericRow.of(1, 7, s("z"), s("old"), s("q"), true, 2), GenericRow.of(2, null, s("a"), null, s("r"), false, 2));
        rows(table("pk_aggregates"), GenericRow.of(1, 9, s("b"), null, s("s"), null, 4));
        dump("pk_aggregates");
        catalog.createTable(id("pk_grouped"), keyed("merge-engine", "partial-update", "fields.n.sequence-group", "v", "write-only", "true").build(), false);
        rows(table("pk_grouped"), add(1, "a", 2));
        rows(table("pk_grouped"), add(1, "b", 1));
        dump("pk_grouped");
    }

    private void keyedChangelog() throws Exception {
        catalog.createTable(id("pk_changelog"), keyed("changelog-producer", "input", "write-only", "true").build(), false);
        FileStoreTable table = table("pk_changelog");
        rows(table, add(1, "a", 1), add(2, "b", 2));
        rows(table, row(RowKind.UPDATE_BEFORE, 1, "a", 1L), row(RowKind.UPDATE_AFTER, 1, "aa", 10L), add(3, "c", 3));
        rows(table, row(RowKind.DELETE, 2, "b", 2L));
        dump("pk_changelog");
        Path folder = expected.resolve("pk_changelog").resolve("changes");
        Files.createDirectories(folder);
        for (long snapshot = 1; snapshot <= table.snapshotManager().latestSnapshotId(); snapshot++) {
            Map<String, String> between = new TreeMap<>();
            between.put("incremental-between", (snapshot - 1) + "," + snapshot);
            between.put("incremental-between-scan-mode", "changelog");
            Table then = new AuditLogTable(table.copy(between));
            ReadBuilder builder = then.newReadBuilder();
            RowType type = then.rowType();
            List<String> lines = new ArrayList<>();
            try (RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan())) {
                reader.forEachRemaining(row -> lines.add(show(row, type)));
            }
            Collections.sort(lines);
            Files.write(folder.resolve(snapshot + ".jsonl"), lines, StandardCharsets.UTF_8);
        }
    }

    /** File indexes of values whose ranges overlap, in the manifest or beside the file, by the threshold. */
    private void appendIndexed(String name, String threshold) throws Exception {
        Schema.Builder builder = Schema.newBuilder().column("i", DataTypes.INT()).column("l", DataTypes.BIGINT())
                .column("s", DataTypes.STRING()).column("d", DataTypes.DOUBLE()).column("t", DataTypes.TIMESTAMP(6))
                .column("c", DataTypes.STRING()).column("n", DataTypes.SMALLINT())
                .option("file-index.bloom-filter.columns", "i,l,s,d,t").option("file-index.bitmap.columns", "c,n")
                .option("file-index.in-manifest-threshold", threshold);
        for (String column : new String[] {"i", "l", "s", "d", "t"}) {
            builder.option("file-index.bloom-filter." + column + ".items", "100").option("file-index.bloom-filter." + column + ".fpp", "0.0001");
        }
        catalog.createTable(id(name), builder.build(), false);
        for (int part = 0; part < 3; part++) {
            GenericRow[] rows = new GenericRow[10];
            for (int i = 0; i < rows.length; i++) {
                int n = i * 3 + part;
                rows[i] = GenericRow.of(n, n * 10000000000L, s("a text that is longer than one block " + n), n / 4.0,
                        Timestamp.fromEpochMillis(1704164646000L + n, 5000), s("c" + n), part == 0 && i == 0 ? null : (short) n);
            }
            rows(table(name), rows);
        }
        dump(name);
    }

    private void keyedPostpone() throws Exception {
        catalog.createTable(id("pk_postpone"), keyed("bucket", "-2").build(), false);
        rows(table("pk_postpone"), add(1, "a", 1), add(2, "b", 2));
        dump("pk_postpone");
    }

    // ---------------------------------------------------------------- what Paimon reads back

    private void dump(String name) throws Exception {
        dump(table(name), name, "main");
    }

    private void dumpBranch(String name, String branch) throws Exception {
        dump(table(name).switchToBranch(branch), name, branch);
    }

    private void dump(FileStoreTable table, String name, String branch) throws Exception {
        Path folder = expected.resolve(name).resolve(branch);
        Files.createDirectories(folder);
        long earliest = table.snapshotManager().earliestSnapshotId();
        long latest = table.snapshotManager().latestSnapshotId();
        for (long snapshot = earliest; snapshot <= latest; snapshot++) {
            Map<String, String> at = new TreeMap<>();
            at.put("scan.snapshot-id", Long.toString(snapshot));
            Table then = table.copy(at);
            ReadBuilder builder = then.newReadBuilder();
            RowType type = then.rowType();
            List<String> lines = new ArrayList<>();
            try (RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan())) {
                reader.forEachRemaining(row -> lines.add(show(row, type)));
            }
            Collections.sort(lines);
            Files.write(folder.resolve(snapshot + ".jsonl"), lines, StandardCharsets.UTF_8);
        }
    }

    private static String show(InternalRow row, RowType type) {
        StringBuilder text = new StringBuilder("{");
        List<DataField> fields = type.getFields();
        for (int i = 0; i < fields.size(); i++) {
            Object value = InternalRow.createFieldGetter(fields.get(i).type(), i).getFieldOrNull(row);
            text.append(i == 0 ? "" : ", ").append(quote(fields.get(i).name())).append(": ").append(show(value, fields.get(i).type()));
        }
        return text.append("}").toString();
    }

    /** Values that any reader can print the same way: dates as days, timestamps as microseconds, bytes as hex. */
    private static String show(Object value, DataType type) {
        if (value == null) {
            return "null";
        }
        if (value instanceof BinaryString) {
            return quote(value.toString());
        } else if (value instanceof byte[]) {
            StringBuilder hex = new StringBuilder();
            for (byte b : (byte[]) value) {
                hex.append(String.format("%02x", b));
            }
            return quote(hex.toString());
        } else if (value instanceof Decimal) {
            return quote(((Decimal) value).toBigDecimal().toPlainString());
        } else if (value instanceof Timestamp) {
            return Long.toString(((Timestamp) value).toMicros());
        } else if (value instanceof Float) {
            return Integer.toString(Float.floatToIntBits((Float) value));
        } else if (value instanceof Double) {
            return Long.toString(Double.doubleToLongBits((Double) value));
        } else if (value instanceof InternalRow) {
            return show((InternalRow) value, (RowType) type);
        } else if (value instanceof InternalMap) {
            MapType map = (MapType) type;
            InternalArray keys = ((InternalMap) value).keyArray();
            InternalArray values = ((InternalMap) value).valueArray();
            TreeMap<String, String> sorted = new TreeMap<>();
            for (int i = 0; i < keys.size(); i++) {
                sorted.put(show(InternalArray.createElementGetter(map.getKeyType()).getElementOrNull(keys, i), map.getKeyType()),
                        show(InternalArray.createElementGetter(map.getValueType()).getElementOrNull(values, i), map.getValueType()));
            }
            StringBuilder text = new StringBuilder();
            sorted.forEach((k, v) -> text.append(text.length() == 0 ? "" : ", ").append(k).append(": ").append(v));
            return "{" + text + "}";
        } else if (value instanceof InternalArray) {
            DataType element = ((ArrayType) type).getElementType();
            InternalArray array = (InternalArray) value;
            StringBuilder text = new StringBuilder("[");
            for (int i = 0; i < array.size(); i++) {
                text.append(i == 0 ? "" : ", ").append(show(InternalArray.createElementGetter(element).getElementOrNull(array, i), element));
            }
            return text.append("]").toString();
        }
        return value.toString();
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < 0x20) {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
