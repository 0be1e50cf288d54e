"""RKE's and RKE2's configuration, MetalLB's, Cilium's: pure, data in, text out."""
