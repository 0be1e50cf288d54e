"""Faults by number: apply and destroy of the shipped specs while the cloud misbehaves, or while runs are killed."""
