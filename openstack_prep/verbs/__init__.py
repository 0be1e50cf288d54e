"""What can be done with a spec: plan, apply, destroy, scan, audit, export, keep a plan."""
