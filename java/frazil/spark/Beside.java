package frazil.spark;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Rows of a column file beside those of its data file. The row groups of the two need not be the same; those without a
 * row that is asked for are left out.
 */
abstract class Beside<T> {
  final FilePartitionReaderFactory parquet;
  private final ColumnFile file;
  private final RowGroups groups;
  private PartitionReader<T> inner;
  private T read;
  private long first = 0L;
  private long end = 0L;

  /** The reader gives a row's position last. */
  Beside(FilePartitionReaderFactory parquet, ColumnFile file, RowGroups groups) {
    this.parquet = parquet;
    this.file = file;
    this.groups = groups;
  }

  abstract PartitionReader<T> open(PartitionedFile file);

  /** The position of the first of some rows. */
  abstract long first(T rows);

  abstract int count(T rows);

  /** Goes forward to what has the row at a position. */
  void reach(long position) throws IOException {
    if (position < end) return;
    long start = groups.startOf(position);
    if (inner == null || start > groups.startOf(end)) {
      close();
      inner = open(Readers.file(file.path(), start, file.size() - start, file.size()));
    }
    do {
      if (!inner.next()) throw new IOException("column file " + file.path() + " has no row " + position);
      read = inner.get();
      first = first(read);
      end = first + count(read);
    } while (position >= end);
    if (position < first) throw new IOException("column file " + file.path() + " has no row " + position);
  }

  /** What was reached. */
  T read() {
    return read;
  }

  /** The position of its first row. */
  long first() {
    return first;
  }

  /** The position after its last row. */
  long end() {
    return end;
  }

  void close() throws IOException {
    if (inner != null) inner.close();
    inner = null;
  }

  /** Row by row. */
  static class Rows extends Beside<InternalRow> {
    Rows(FilePartitionReaderFactory parquet, ColumnFile file, RowGroups groups) {
      super(parquet, file, groups);
    }

    @Override
    PartitionReader<InternalRow> open(PartitionedFile file) {
      return parquet.buildReader(file);
    }

    @Override
    long first(InternalRow row) {
      return row.getLong(row.numFields() - 1);
    }

    @Override
    int count(InternalRow row) {
      return 1;
    }
  }

  /** Batch by batch. */
  static class Batches extends Beside<ColumnarBatch> {
    Batches(FilePartitionReaderFactory parquet, ColumnFile file, RowGroups groups) {
      super(parquet, file, groups);
    }

    @Override
    PartitionReader<ColumnarBatch> open(PartitionedFile file) {
      return parquet.buildColumnarReader(file);
    }

    @Override
    long first(ColumnarBatch batch) {
      return batch.column(batch.numCols() - 1).getLong(0);
    }

    @Override
    int count(ColumnarBatch batch) {
      return batch.numRows();
    }
  }
}
