package frazil.spark;

import java.io.IOException;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.schema.Type;
import org.apache.spark.paths.SparkPath;

/** The row groups of a column file: the position of each one's first row, and the byte that it starts at. */
class RowGroups {
  private final TreeMap<Long, Long> starts = new TreeMap<>(Map.of(0L, 0L));

  /** Looks at the footer; refuses a file without one of these columns, or with other rows than its data file. */
  static RowGroups of(ColumnFile file, int[] fieldIds, long records, Configuration hadoop)
      throws IOException {
    FileStatus status = new FileStatus(file.size(), false, 0, 0L, 0L, SparkPath.fromUrlString(file.path()).toPath());
    try (ParquetFileReader footer = ParquetFileReader.open(HadoopInputFile.fromStatus(status, hadoop))) {
      Set<Integer> known = new HashSet<>();
      for (Type column : footer.getFooter().getFileMetaData().getSchema().getFields()) {
        if (column.getId() != null) known.add(column.getId().intValue());
      }
      for (int id : fieldIds) {
        if (!known.contains(id)) {
          throw new IOException("column file " + file.path() + " has no field " + id + "; the entry says it has");
        }
      }
      if (footer.getRecordCount() != records) {
        throw new IOException(
            "column file " + file.path() + " has " + footer.getRecordCount() + " rows; its data file has " + records);
      }
      return new RowGroups(footer);
    }
  }

  /** Spark's reader takes the row groups whose middle is in a range of bytes; in one it can tell them apart. */
  private RowGroups(ParquetFileReader footer) {
    long position = 0L;
    long middle = -1L;
    for (BlockMetaData group : footer.getRowGroups()) {
      if (group.getStartingPos() <= middle) {
        starts.clear();
        starts.put(0L, 0L);
        return;
      }
      starts.put(position, group.getStartingPos());
      middle = group.getStartingPos() + group.getCompressedSize() / 2L;
      position += group.getRowCount();
    }
  }

  /** Where the row group of a row starts. */
  long startOf(long position) {
    return starts.floorEntry(position).getValue();
  }
}
