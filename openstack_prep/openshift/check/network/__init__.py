"""Whether networks, subnets and addresses are as the installer needs them."""
