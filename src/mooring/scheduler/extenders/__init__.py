"""HTTP extenders: `extender`, `requests`, `cycle`, `client`, `transport`, `http`, in reading order."""
