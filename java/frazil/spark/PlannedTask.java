package frazil.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;

/**
 * A task as the driver holds it: which parts of which files of a plan. It travels to an executor with all that is known
 * of these files.
 */
class PlannedTask implements Readers.Task, Serializable {
  private static final long serialVersionUID = 1L;
  private final transient PlanFiles files;
  private final int[] rows;
  private final long[] starts;
  private final long[] lengths;

  PlannedTask(PlanFiles files, int[] rows, long[] starts, long[] lengths) {
    this.files = files;
    this.rows = rows;
    this.starts = starts;
    this.lengths = lengths;
  }

  @Override
  public Slice[] slices() {
    Slice[] slices = new Slice[rows.length];
    for (int i = 0; i < slices.length; i++) slices[i] = files.slice(rows[i], starts[i], lengths[i]);
    return slices;
  }

  protected Object writeReplace() {
    return new Readers.Plain(slices());
  }

  /** One whose files lie in one partition. */
  static class Keyed extends PlannedTask implements HasPartitionKey {
    private static final long serialVersionUID = 1L;
    private final transient InternalRow key;

    Keyed(PlanFiles files, int[] rows, long[] starts, long[] lengths, InternalRow key) {
      super(files, rows, starts, lengths);
      this.key = key;
    }

    @Override
    public InternalRow partitionKey() {
      return key;
    }

    @Override
    protected Object writeReplace() {
      return new Readers.Keyed(slices(), key);
    }
  }
}
