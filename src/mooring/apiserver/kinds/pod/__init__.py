"""Pod (v1), and the parts of a pod spec that other kinds share.

Reading order: `options`, `resources`, `defaults`, `security`, `scheduling`, `environment`, `containers`, `volumes`,
`spec`, `update`, `status`, `warnings`, `prepare`, `strategy`.
"""
