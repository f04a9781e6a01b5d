"""What things are: calls, tools, results, verdicts, effects. Imports nothing above itself."""
