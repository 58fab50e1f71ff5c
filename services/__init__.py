"""Services beside Penstock, started on this machine: for tests, and for trying things out."""
