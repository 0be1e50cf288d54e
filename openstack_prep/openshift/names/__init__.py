"""The DNS names of a cluster: hosts files, dnsmasq, BIND, and the resolver."""
