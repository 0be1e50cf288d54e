"""Who has which address and MAC address: in a pool file, or in Neutron."""
