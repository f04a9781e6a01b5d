"""What is said on a line? Requests, answers and questions back, in both eras of the protocol."""
