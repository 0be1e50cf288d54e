"""What runs inside the servers' virtual environment, beside OpenStack's own code."""
