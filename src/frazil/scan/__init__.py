"""The read path: plan from the tree, match deletes, make tasks, tell what changed."""
