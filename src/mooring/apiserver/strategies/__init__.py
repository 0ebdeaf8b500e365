"""What is special about each kind: one file for each special kind, or for a few that are alike."""
