"""Options of reads, writes and streams, checked once."""
