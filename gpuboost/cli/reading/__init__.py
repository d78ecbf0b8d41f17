"""What the command line reads: tables, their columns, labels and targets."""
