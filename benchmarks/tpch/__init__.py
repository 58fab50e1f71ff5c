"""TPC-H: 22 queries over a shop's tables, as views that are kept up to date."""
