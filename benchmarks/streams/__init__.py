"""Three jobs over the bids of Nexmark, each by several systems; every side runs in a process of its own."""
