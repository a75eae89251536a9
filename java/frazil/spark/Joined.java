package frazil.spark;

import java.io.IOException;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The rows of one file with columns of others, which have the same rows. The first tells their positions. */
abstract class Joined<T> implements PartitionReader<T> {
  final PartitionReader<T> base;
  final List<Beside<T>> others;
  final Join join;
  T current;

  Joined(PartitionReader<T> base, List<Beside<T>> others, Join join) {
    this.base = base;
    this.others = others;
    this.join = join;
  }

  @Override
  public T get() {
    return current;
  }

  @Override
  public void close() throws IOException {
    base.close();
    for (Beside<T> other : others) other.close();
  }

  /** Row by row. */
  static class Rows extends Joined<InternalRow> {
    private final InternalRow[] read;
    private final GenericInternalRow made;

    Rows(PartitionReader<InternalRow> base, List<Beside<InternalRow>> others, Join join) {
      super(base, others, join);
      read = new InternalRow[others.size() + 1];
      made = new GenericInternalRow(join.places().length);
    }

    @Override
    public boolean next() throws IOException {
      if (!base.next()) return false;
      read[0] = base.get();
      long position = read[0].getLong(read[0].numFields() - 1);
      for (int i = 0; i < others.size(); i++) {
        others.get(i).reach(position);
        read[i + 1] = others.get(i).read();
      }
      for (int i = 0; i < join.places().length; i++) {
        InternalRow row = read[join.places()[i][0]];
        int at = join.places()[i][1];
        made.update(i, row.isNullAt(at) ? null : row.get(at, join.types()[i]));
      }
      current = made;
      return true;
    }
  }

  /** Batch by batch. A batch ends where that of any file does; nothing is copied. */
  static class Batches extends Joined<ColumnarBatch> {
    private ColumnarBatch batch;
    private ColumnVector positions;
    private int rows = 0;
    private int taken = 0;

    Batches(PartitionReader<ColumnarBatch> base, List<Beside<ColumnarBatch>> others, Join join) {
      super(base, others, join);
    }

    @Override
    public boolean next() throws IOException {
      while (taken == rows) {
        if (!base.next()) return false;
        batch = base.get();
        positions = batch.column(batch.numCols() - 1);
        rows = batch.numRows();
        taken = 0;
      }
      long first = positions.getLong(taken);
      long end = Long.MAX_VALUE;
      for (Beside<ColumnarBatch> other : others) {
        other.reach(first);
        end = Math.min(end, other.end());
      }
      int until = rowsBefore(end);
      // Spark's reader leaves out pages that its filters rule out.
      boolean isWhole = positions.getLong(until - 1) - first == until - 1 - taken;
      ColumnVector[] columns = new ColumnVector[join.places().length];
      int[][] places = new int[others.size() + 1][];
      for (int i = 0; i < columns.length; i++) {
        int part = join.places()[i][0];
        int at = join.places()[i][1];
        if (part == 0) {
          columns[i] = Vectors.Shifted.of(batch.column(at), taken);
          continue;
        }
        Beside<ColumnarBatch> other = others.get(part - 1);
        ColumnVector column = other.read().column(at);
        if (isWhole) {
          columns[i] = Vectors.Shifted.of(column, (int) (first - other.first()));
          continue;
        }
        if (places[part] == null) places[part] = places(until, other.first());
        columns[i] = new Vectors.Living(column, places[part]);
      }
      current = new ColumnarBatch(columns, until - taken);
      taken = until;
      return true;
    }

    /** How many rows of the batch have a position before one; the first that is left always has. */
    private int rowsBefore(long end) {
      if (positions.getLong(rows - 1) < end) return rows;
      int before = taken;
      int after = rows - 1;
      while (after - before > 1) {
        int middle = (before + after) >>> 1;
        if (positions.getLong(middle) < end) before = middle;
        else after = middle;
      }
      return after;
    }

    private int[] places(int until, long from) {
      int[] places = new int[until - taken];
      for (int i = 0; i < places.length; i++) places[i] = (int) (positions.getLong(taken + i) - from);
      return places;
    }
  }
}
