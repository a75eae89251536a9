package frazil.spark;

import java.io.Serializable;

/** A part of a data file, with what is known of the whole file. */
public class Slice implements Serializable {
  String path;
  String name;
  long start;
  long length;
  long size;
  int reader;
  long base;
  long firstRowId;
  long sequence;
  int spec;
  byte[] deleted;

  Slice part(long from, long bytes) {
    Slice made = new Slice();
    made.path = path;
    made.name = name;
    made.start = from;
    made.length = bytes;
    made.size = size;
    made.reader = reader;
    made.base = base;
    made.firstRowId = firstRowId;
    made.sequence = sequence;
    made.spec = spec;
    made.deleted = deleted;
    return made;
  }
}
