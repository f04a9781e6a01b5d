"""Who tries to get past which guard? One module a suite; each tells what came of every payload."""
