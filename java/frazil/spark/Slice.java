package frazil.spark;

import java.io.Serializable;

/**
 * A part of a data file, with what is known of the whole file; `deleted` is a bitmap of positions, or null. Of the
 * files that have its columns, `path` is the one that tells the rows, and `columnFiles` are the others.
 */
record Slice(
    String path,
    String name,
    long start,
    long length,
    long size,
    int reader,
    long base,
    long firstRowId,
    long sequence,
    int spec,
    byte[] deleted,
    long records,
    ColumnFile[] columnFiles)
    implements Serializable {}
