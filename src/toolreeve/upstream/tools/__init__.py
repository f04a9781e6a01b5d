"""What does a server offer, and how does it stand on our road? Its tools, pinned, named and judged."""
