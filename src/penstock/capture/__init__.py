"""What happens elsewhere becomes log records."""
