package frazil.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;

/** A part of a file in memory. It is mapped in pieces, as Java maps and numbers at most 2 GB at once. */
class MappedPart {
  private final ByteBuffer[] pieces;
  private final long pieceBytes;

  /** `place` is where the part starts and how many bytes it has; no number lies across two pieces. */
  MappedPart(FileChannel file, Json place, long pieceBytes) throws IOException {
    long start = place.at(0).number();
    long size = place.at(1).number();
    this.pieceBytes = pieceBytes;
    pieces = new ByteBuffer[(int) ((size + pieceBytes - 1) / pieceBytes)];
    for (int i = 0; i < pieces.length; i++) {
      long from = i * pieceBytes;
      pieces[i] =
          file.map(FileChannel.MapMode.READ_ONLY, start + from, Math.min(pieceBytes, size - from))
              .order(ByteOrder.nativeOrder());
    }
  }

  private ByteBuffer piece(long at) {
    return pieces[(int) (at / pieceBytes)];
  }

  long longAt(long index) {
    long at = index * Long.BYTES;
    return piece(at).getLong((int) (at % pieceBytes));
  }

  int intAt(long index) {
    long at = index * Integer.BYTES;
    return piece(at).getInt((int) (at % pieceBytes));
  }

  byte[] bytes(long from, long end) {
    byte[] bytes = new byte[Math.toIntExact(end - from)];
    for (int read = 0; read < bytes.length; ) {
      long at = from + read;
      int here = (int) Math.min(bytes.length - read, pieceBytes - at % pieceBytes);
      piece(at).get((int) (at % pieceBytes), bytes, read, here);
      read += here;
    }
    return bytes;
  }
}
