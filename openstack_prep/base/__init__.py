"""What all modules may use: errors, keys, values, secrets, private files. Knows neither OpenStack nor resources."""
