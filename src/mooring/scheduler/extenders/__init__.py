"""HTTP extenders: `extender`, `cycle`, `client`, in reading order."""
