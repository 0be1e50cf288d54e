"""The operations on a spec: plan, apply, destroy, scan, audit, export, save a plan."""
