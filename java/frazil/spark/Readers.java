package frazil.spark;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.roaringbitmap.longlong.Roaring64NavigableMap;

/** Reads slices with Spark's own Parquet reader; deleted rows are left out batch by batch. */
public class Readers implements PartitionReaderFactory {
  private final FilePartitionReaderFactory[] parquet;
  private final Join[] joins;
  private final int[] positionAt;
  private final Recipe[] recipes;
  private final boolean columnar;

  /** Slices number readers of single files first, then joins of several. */
  Readers(
      FilePartitionReaderFactory[] parquet,
      Join[] joins,
      int[] positionAt,
      Recipe[] recipes,
      boolean columnar) {
    this.parquet = parquet;
    this.joins = joins;
    this.positionAt = positionAt;
    this.recipes = recipes;
    this.columnar = columnar;
  }

  /** Slices that one task reads. */
  interface Task extends InputPartition {
    Slice[] slices();
  }

  /** Slices of any files. */
  record Plain(Slice[] slices) implements Task, Serializable {}

  /** Slices of files of one partition. */
  record Keyed(Slice[] slices, InternalRow partitionKey) implements Task, HasPartitionKey, Serializable {}

  public boolean supportColumnarReads(InputPartition partition) {
    return columnar;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return new Rows(((Task) partition).slices(), this);
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new Batches(((Task) partition).slices(), this);
  }

  /** Hadoop's settings, which a reader brings to executors. */
  private Configuration hadoop(Join join) {
    return ((ParquetPartitionReaderFactory) parquet[join.readers()[0]]).broadcastedConf().value().value();
  }

  static PartitionedFile file(String path, long start, long length, long size) {
    return new PartitionedFile(
        InternalRow.empty(),
        SparkPath.fromUrlString(path),
        start,
        length,
        new String[0],
        0L,
        size,
        scala.collection.immutable.Map$.MODULE$.empty());
  }

  /** A bit per row, up to the last deleted one. */
  static long[] words(byte[] bitmap) throws IOException {
    Roaring64NavigableMap positions = new Roaring64NavigableMap();
    positions.deserializePortable(new DataInputStream(new ByteArrayInputStream(bitmap)));
    if (positions.isEmpty()) return null;
    long[] words = new long[(int) (positions.last() >>> 6) + 1];
    positions.forEach(position -> words[(int) (position >>> 6)] |= 1L << (position & 63L));
    return words;
  }

  static boolean isSet(long[] words, long position) {
    int at = (int) (position >>> 6);
    return at < words.length && (words[at] >>> (position & 63L) & 1L) != 0L;
  }

  /** One slice after the other. */
  abstract static class Sequence<T> implements PartitionReader<T> {
    final Slice[] slices;
    final Readers readers;
    Slice slice;
    long[] deleted;
    private PartitionReader<T> inner;
    private int next = 0;

    Sequence(Slice[] slices, Readers readers) {
      this.slices = slices;
      this.readers = readers;
    }

    abstract PartitionReader<T> open(FilePartitionReaderFactory parquet, PartitionedFile file);

    abstract Beside<T> beside(FilePartitionReaderFactory parquet, ColumnFile file, RowGroups groups);

    abstract PartitionReader<T> joined(PartitionReader<T> base, List<Beside<T>> others, Join join);

    abstract boolean take(T read);

    public boolean next() throws IOException {
      try {
        return advance();
      } catch (IOException | RuntimeException error) {
        if (slice == null) throw error;
        throw new IOException("cannot read " + slice.name() + ": " + error.getMessage(), error);
      }
    }

    private boolean advance() throws IOException {
      while (true) {
        if (inner == null) {
          if (next == slices.length) return false;
          slice = slices[next++];
          deleted = slice.deleted() == null ? null : words(slice.deleted());
          inner = opened();
        }
        while (inner.next()) {
          if (take(inner.get())) return true;
        }
        inner.close();
        inner = null;
      }
    }

    private PartitionReader<T> opened() throws IOException {
      PartitionedFile file = file(slice.path(), slice.start(), slice.length(), slice.size());
      int single = readers.parquet.length;
      if (slice.reader() < single) return open(readers.parquet[slice.reader()], file);
      Join join = readers.joins[slice.reader() - single];
      List<RowGroups> groups = join.rowGroups(slice, readers.hadoop(join));
      List<Beside<T>> others = new ArrayList<>();
      for (int i = 0; i < groups.size(); i++) {
        others.add(beside(readers.parquet[join.readers()[i + 1]], slice.columnFiles()[i], groups.get(i)));
      }
      PartitionReader<T> base = open(readers.parquet[join.readers()[0]], file);
      return others.isEmpty() ? base : joined(base, others, join);
    }

    public void close() throws IOException {
      if (inner != null) inner.close();
    }
  }

  /** Row by row. */
  static class Rows extends Sequence<InternalRow> {
    private final UnsafeProjection projection;
    private final GenericInternalRow made;
    private InternalRow current;

    Rows(Slice[] slices, Readers readers) {
      super(slices, readers);
      DataType[] types = new DataType[readers.recipes.length];
      for (int i = 0; i < types.length; i++) types[i] = readers.recipes[i].type();
      projection = UnsafeProjection.create(types);
      made = new GenericInternalRow(types.length);
    }

    @Override
    PartitionReader<InternalRow> open(FilePartitionReaderFactory parquet, PartitionedFile file) {
      return parquet.buildReader(file);
    }

    @Override
    Beside<InternalRow> beside(FilePartitionReaderFactory parquet, ColumnFile file, RowGroups groups) {
      return new Beside.Rows(parquet, file, groups);
    }

    @Override
    PartitionReader<InternalRow> joined(
        PartitionReader<InternalRow> base, List<Beside<InternalRow>> others, Join join) {
      return new Joined.Rows(base, others, join);
    }

    @Override
    boolean take(InternalRow row) {
      int position = readers.positionAt[slice.reader()];
      if (deleted != null && isSet(deleted, row.getLong(position))) return false;
      for (int i = 0; i < readers.recipes.length; i++) {
        made.update(i, readers.recipes[i].value(row, position, slice));
      }
      current = projection.apply(made);
      return true;
    }

    @Override
    public InternalRow get() {
      return current;
    }
  }

  /** Batch by batch. */
  static class Batches extends Sequence<ColumnarBatch> {
    private ColumnarBatch current;

    Batches(Slice[] slices, Readers readers) {
      super(slices, readers);
    }

    @Override
    PartitionReader<ColumnarBatch> open(FilePartitionReaderFactory parquet, PartitionedFile file) {
      return parquet.buildColumnarReader(file);
    }

    @Override
    Beside<ColumnarBatch> beside(FilePartitionReaderFactory parquet, ColumnFile file, RowGroups groups) {
      return new Beside.Batches(parquet, file, groups);
    }

    @Override
    PartitionReader<ColumnarBatch> joined(
        PartitionReader<ColumnarBatch> base, List<Beside<ColumnarBatch>> others, Join join) {
      return new Joined.Batches(base, others, join);
    }

    @Override
    boolean take(ColumnarBatch batch) {
      int rows = batch.numRows();
      ColumnVector[] columns = new ColumnVector[batch.numCols()];
      for (int i = 0; i < columns.length; i++) columns[i] = batch.column(i);
      int position = readers.positionAt[slice.reader()];
      ColumnVector positions = position < 0 ? null : columns[position];
      Recipe[] recipes = readers.recipes;
      ColumnVector[] made = new ColumnVector[recipes.length];
      boolean unchanged = recipes.length == columns.length;
      for (int i = 0; i < recipes.length; i++) {
        made[i] = recipes[i].vector(columns, positions, slice, rows);
        unchanged = unchanged && recipes[i].isUnchanged(i);
      }
      int living = rows;
      if (deleted != null) {
        int[] places = new int[rows];
        living = 0;
        for (int row = 0; row < rows; row++) {
          if (!isSet(deleted, positions.getLong(row))) places[living++] = row;
        }
        if (living == 0) return false;
        if (living < rows) {
          unchanged = false;
          for (int i = 0; i < made.length; i++) made[i] = new Vectors.Living(made[i], places);
        }
      }
      current = unchanged ? batch : new ColumnarBatch(made, living);
      return true;
    }

    @Override
    public ColumnarBatch get() {
      return current;
    }
  }
}
