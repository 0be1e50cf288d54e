"""Commands about the command itself: completion, explain, example and schema."""
