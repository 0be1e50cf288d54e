"""What services list, asked once a run, and the records that their answers become."""
