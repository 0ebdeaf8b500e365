"""What a plugin is: the extension points, the values that pass through them, and who may come in."""
