"""What Neutron lets through by address pairs and security group rules: pure, shared by check, verify and rke mesh."""
