"""Where the metrics of a run go: one small file a destination."""
