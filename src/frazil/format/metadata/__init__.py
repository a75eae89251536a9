"""Table metadata: schemas, specs, properties, snapshots, and their JSON."""
