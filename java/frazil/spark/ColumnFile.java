package frazil.spark;

import java.io.Serializable;

/** A file with columns of a data file: one row for each of its rows, in the same order. */
record ColumnFile(String path, long size) implements Serializable {}
