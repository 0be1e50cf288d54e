"""Whether networks, subnets and addresses are as the installer wants them."""
