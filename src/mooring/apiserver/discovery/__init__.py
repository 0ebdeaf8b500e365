"""Discovery: the groups, versions and resources that the server serves."""
