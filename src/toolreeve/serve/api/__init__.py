"""REST under `/api/v1`: each module declares the endpoints of one topic."""
