"""The read path: plan from the tree, match deletes, create tasks, find changes."""
