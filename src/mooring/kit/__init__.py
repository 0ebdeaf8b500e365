"""Time, randomness, waiting and ordering, for all other packages.

   clock                real and virtual time; timestamps
   entropy              seeded randomness
   loop                 an event loop on virtual time; how long a real one was blocked
   tasks                named task groups that lose no exception; worker pools
   heap                 a heap with keys
   backoff              delays after failures
   sampling             a sampling profiler of a thread
   memory               settings of the garbage collector
   logs                 log formats and levels
   host_address         the address by which other machines reach this one
   temporary_directory  directories that do not outlive their process

1. The kit is independent of Kubernetes and imports no other package of mooring.
2. Only the kit reads the real clock and real randomness; ruff's banned-api table enforces that.
"""
