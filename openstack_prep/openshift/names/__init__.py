"""Names of a cluster, where they should lead and where they do: hosts files, dnsmasq, BIND, the resolver."""
