package frazil.spark;

import java.util.Arrays;

/**
 * Parts of the files of a plan, in the order in which tasks read them: two numbers each, as a plan may have millions.
 * A file is cut every `split` bytes.
 */
class Slices {
  private final PlanFiles files;
  private final long split;
  private int[] rows = new int[8];
  private int[] pieces = new int[8];
  private int size = 0;

  Slices(PlanFiles files, long split) {
    this.files = files;
    this.split = split;
  }

  void add(int row, int piece) {
    if (size == rows.length) {
      int most = size + (size >> 1);
      rows = Arrays.copyOf(rows, most);
      pieces = Arrays.copyOf(pieces, most);
    }
    rows[size] = row;
    pieces[size++] = piece;
  }

  int size() {
    return size;
  }

  /** What tasks read of a file, from one place in the order to before another. */
  Slice[] between(int from, int to) {
    Slice[] slices = new Slice[to - from];
    for (int i = 0; i < slices.length; i++) {
      int row = rows[from + i];
      long start = pieces[from + i] * split;
      slices[i] = files.slice(row, start, Math.min(split, files.bytes(row) - start));
    }
    return slices;
  }
}
