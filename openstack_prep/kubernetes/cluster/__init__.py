"""The kind rke_cluster: from a stack's nodes to the files of RKE and RKE2."""
