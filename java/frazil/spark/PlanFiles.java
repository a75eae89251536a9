package frazil.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
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
  private final LongBuffer sizes;
  private final LongBuffer bases;
  private final LongBuffer firstRowIds;
  private final LongBuffer sequences;
  private final IntBuffer specs;
  private final IntBuffer readers;
  private final IntBuffer groups;
  private final Values names;
  private final Values addresses;
  private final Values deleted;

  private PlanFiles(Json described, FileChannel file) throws IOException {
    Json columns = described.of("columns");
    size = (int) described.of("count").number();
    folder = described.of("folder").text();
    folderAddress = described.of("folder address").text();
    sizes = part(file, columns.of("size"), 0).asLongBuffer();
    bases = part(file, columns.of("base"), 0).asLongBuffer();
    firstRowIds = part(file, columns.of("first row id"), 0).asLongBuffer();
    sequences = part(file, columns.of("sequence"), 0).asLongBuffer();
    specs = part(file, columns.of("spec"), 0).asIntBuffer();
    readers = part(file, columns.of("reader"), 0).asIntBuffer();
    groups = part(file, columns.of("group"), 0).asIntBuffer();
    names = values(file, columns.of("name"));
    addresses = values(file, columns.of("address"));
    deleted = values(file, columns.of("deleted"));
  }

  static PlanFiles of(Json plan) {
    Json described = plan.of("files");
    try (FileChannel file = FileChannel.open(Path.of(described.of("at").text()), StandardOpenOption.READ)) {
      return new PlanFiles(described, file);
    } catch (IOException error) {
      throw new IllegalStateException("cannot read the files of a plan: " + error, error);
    }
  }

  private static ByteBuffer part(FileChannel file, Json parts, int at) throws IOException {
    Json place = parts.at(at);
    return file.map(FileChannel.MapMode.READ_ONLY, place.at(0).number(), place.at(1).number())
        .order(ByteOrder.nativeOrder());
  }

  private static Values values(FileChannel file, Json parts) throws IOException {
    return new Values(part(file, parts, 0).asLongBuffer(), part(file, parts, 1));
  }

  /** Texts or bitmaps, one after the other. */
  private record Values(LongBuffer offsets, ByteBuffer data) {
    byte[] at(int row) {
      byte[] bytes = new byte[(int) (offsets.get(row + 1) - offsets.get(row))];
      data.get((int) offsets.get(row), bytes);
      return bytes;
    }

    String text(int row) {
      return new String(at(row), StandardCharsets.UTF_8);
    }

    boolean has(int row) {
      return offsets.get(row + 1) > offsets.get(row);
    }
  }

  int size() {
    return size;
  }

  long bytes(int row) {
    return sizes.get(row);
  }

  /** The number of the partition that a file lies in. */
  int group(int row) {
    return groups.get(row);
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
        sizes.get(row),
        readers.get(row),
        bases.get(row),
        firstRowIds.get(row),
        sequences.get(row),
        specs.get(row),
        deleted.has(row) ? deleted.at(row) : null);
  }
}
