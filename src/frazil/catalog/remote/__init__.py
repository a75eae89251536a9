"""The catalog behind a Frazil server, through the native extension of its REST API."""
