package frazil.spark;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The files of a plan, as columns in a file that Python wrote: mapped into memory, so that a million of them take none
 * of the heap. What was mapped stays when Python removes the file.
 */
class PlanFiles {
  private final int size;
  private final String folder;
  private final String folderAddress;
  private final MappedPart sizes;
  private final MappedPart bases;
  private final MappedPart firstRowIds;
  private final MappedPart sequences;
  private final MappedPart specs;
  private final MappedPart readers;
  private final MappedPart groups;
  private final MappedPart records;
  private final Values names;
  private final Values addresses;
  private final Values deleted;
  private final Values columnFiles;

  private PlanFiles(Json described, FileChannel file) throws IOException {
    Json columns = described.of("columns");
    size = (int) described.of("count").number();
    folder = described.of("folder").text();
    folderAddress = described.of("folder address").text();
    long piece = described.of("piece").number();
    sizes = new MappedPart(file, columns.of("size").at(0), piece);
    bases = new MappedPart(file, columns.of("base").at(0), piece);
    firstRowIds = new MappedPart(file, columns.of("first row id").at(0), piece);
    sequences = new MappedPart(file, columns.of("sequence").at(0), piece);
    specs = new MappedPart(file, columns.of("spec").at(0), piece);
    readers = new MappedPart(file, columns.of("reader").at(0), piece);
    groups = new MappedPart(file, columns.of("group").at(0), piece);
    records = new MappedPart(file, columns.of("records").at(0), piece);
    names = Values.of(file, columns.of("name"), piece);
    addresses = Values.of(file, columns.of("address"), piece);
    deleted = Values.of(file, columns.of("deleted"), piece);
    columnFiles = Values.of(file, columns.of("column files"), piece);
  }

  static PlanFiles of(Json plan) {
    Json described = plan.of("files");
    try (FileChannel file = FileChannel.open(Path.of(described.of("at").text()), StandardOpenOption.READ)) {
      return new PlanFiles(described, file);
    } catch (IOException error) {
      throw new IllegalStateException("cannot read the files of a plan: " + error, error);
    }
  }

  /** Texts or bitmaps, one after the other. */
  private record Values(MappedPart offsets, MappedPart data) {
    static Values of(FileChannel file, Json parts, long piece) throws IOException {
      return new Values(new MappedPart(file, parts.at(0), piece), new MappedPart(file, parts.at(1), piece));
    }

    byte[] at(int row) {
      return data.bytes(offsets.longAt(row), offsets.longAt(row + 1L));
    }

    String text(int row) {
      return new String(at(row), StandardCharsets.UTF_8);
    }

    boolean has(int row) {
      return offsets.longAt(row + 1L) > offsets.longAt(row);
    }
  }

  int size() {
    return size;
  }

  long bytes(int row) {
    return sizes.longAt(row);
  }

  /** The number of the partition that a file lies in. */
  int group(int row) {
    return groups.intAt(row);
  }

  /** A part of a file, as a task reads it. */
  Slice slice(int row, long start, long length) {
    boolean isElsewhere = addresses.has(row);
    String name = names.text(row);
    return new Slice(
        isElsewhere ? addresses.text(row) : folderAddress + "/" + name,
        isElsewhere ? name : folder + "/" + name,
        start,
        length,
        sizes.longAt(row),
        readers.intAt(row),
        bases.longAt(row),
        firstRowIds.longAt(row),
        sequences.longAt(row),
        specs.intAt(row),
        deleted.has(row) ? deleted.at(row) : null,
        records.longAt(row),
        columnFiles.has(row) ? columnFiles(Json.parsed(columnFiles.text(row))) : new ColumnFile[0]);
  }

  private static ColumnFile[] columnFiles(Json described) {
    return described.items().stream()
        .map(file -> new ColumnFile(file.at(0).text(), file.at(1).number()))
        .toArray(ColumnFile[]::new);
  }
}
