"""What every room may use: errors, keys, values, secrets, private files.  Knows no OpenStack and no resource."""
