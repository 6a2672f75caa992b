"""What a person holds in hand: command line, specification, report, plots."""
