"""HTTP extenders: `extender`, `requests`, `cycle`, `client`, `http`, in reading order."""
