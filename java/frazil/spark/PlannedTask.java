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
  private final transient Slices all;
  private final int from;
  private final int to;

  PlannedTask(Slices all, int from, int to) {
    this.all = all;
    this.from = from;
    this.to = to;
  }

  @Override
  public Slice[] slices() {
    return all.between(from, to);
  }

  protected Object writeReplace() {
    return new Readers.Plain(slices());
  }

  /** One whose files lie in one partition. */
  static class Keyed extends PlannedTask implements HasPartitionKey {
    private static final long serialVersionUID = 1L;
    private final transient InternalRow key;

    Keyed(Slices all, int from, int to, InternalRow key) {
      super(all, from, to);
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
