"""File integrity: watches guarded and hidden paths, quarantines what commands plant."""
