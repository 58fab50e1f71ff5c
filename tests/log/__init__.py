"""The proof of the log: what it promises, under any input, any crash, any damage."""
