"""One module per page of the explorer."""
