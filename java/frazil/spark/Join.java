package frazil.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * How the columns of a data file and of its column files come together. Of the files that are read, the first gives the
 * rows: the data file, or a column file where no column of the data file is asked for.
 *
 * @param readers the reader of each file
 * @param fieldIds the columns that each column file must have; none for the data file
 * @param places the file of each column, and the column's place in what its reader gives; positions come last
 */
record Join(int[] readers, int[][] fieldIds, int[][] places, DataType[] types) implements Serializable {
  static Join of(Json described, StructType[] read) {
    List<Json> parts = described.of("parts").items();
    int[] readers = parts.stream().mapToInt(part -> (int) part.of("reader").number()).toArray();
    int[][] fieldIds = parts.stream().map(part -> numbers(part.of("field ids"))).toArray(int[][]::new);
    int[][] places = described.of("places").items().stream().map(Join::numbers).toArray(int[][]::new);
    DataType[] types = new DataType[places.length];
    for (int i = 0; i < types.length; i++) types[i] = read[readers[places[i][0]]].fields()[places[i][1]].dataType();
    return new Join(readers, fieldIds, places, types);
  }

  private static int[] numbers(Json list) {
    return list.items().stream().mapToInt(item -> (int) item.number()).toArray();
  }

  /** The row groups of the files after the first; all column files are checked. */
  List<RowGroups> rowGroups(Slice slice, Configuration hadoop) throws IOException {
    List<RowGroups> groups = new ArrayList<>();
    for (int part = 0; part < readers.length; part++) {
      if (fieldIds[part].length == 0) continue;
      ColumnFile file =
          part == 0 ? new ColumnFile(slice.path(), slice.size()) : slice.columnFiles()[part - 1];
      RowGroups found = RowGroups.of(file, fieldIds[part], slice.records(), hadoop);
      if (part > 0) groups.add(found);
    }
    return groups;
  }
}
