"""What a Spark session needs before anything is read or written."""
