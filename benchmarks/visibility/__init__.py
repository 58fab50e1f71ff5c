"""How long it takes until an appended record shows: who appends, who computes, who looks, each in its own process."""
