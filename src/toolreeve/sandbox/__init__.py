"""Where does it run? Processes, and the one way out of them."""
