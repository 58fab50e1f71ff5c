"""The proof of the model: what can be declared, how it is read, and what is refused."""
