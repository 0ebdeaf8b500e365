"""The lives that are built in, written as anybody would write his own.

The order matters where a life has a `match`: the first that matches is taken. Those without are for who asks for them
by name, with the annotation `mooring.dev/life`.
"""

BUILTIN_LIVES = """
lives:
  - name: init
    match: {role: init}
    stages:
      - {name: creating, state: waiting, reason: PodInitializing, for: 50ms, jitter: 50ms}
      - {name: working, state: running, for: 100ms, forAnnotation: mooring.dev/init-for, log: ["{container} prepares"]}
      - {name: done, state: terminated}

  - name: job
    match: {role: container, ownerKind: Job}
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: working, state: running, for: 1s, forAnnotation: mooring.dev/run-for, log: ["{container} works"]}
      - {name: done, state: terminated, log: ["{container} is done"]}

  - name: service
    match: {}
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: serving, state: running, log: ["{container} of {pod} serves on {node}"]}

  - name: succeeds
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: working, state: running, for: 1s, forAnnotation: mooring.dev/run-for, log: ["{container} works"]}
      - {name: done, state: terminated, log: ["{container} is done"]}

  - name: fails
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: working, state: running, for: 1s, forAnnotation: mooring.dev/run-for, log: ["{container} works"]}
      - {name: failed, state: terminated, exitCode: 1, log: ["{container} fails"]}

  - name: crash-loop
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: working, state: running, for: 1s, forAnnotation: mooring.dev/run-for, log: ["{container} starts"]}
      - {name: crashed, state: terminated, exitCode: 1, log: ["{container} panics"]}

  - name: flaky
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - name: serving
        state: running
        for: 30s
        jitter: 60s
        forAnnotation: mooring.dev/run-for
        next: serving
        failureRate: 0.3
        failure: crashed
      - {name: crashed, state: terminated, exitCode: 1, log: ["{container} panics"]}

  - name: slow-start
    stages:
      - {name: creating, state: waiting, for: 2s, jitter: 1s}
      - name: warming
        state: running
        ready: false
        for: 30s
        forAnnotation: mooring.dev/warm-for
        log: ["{container} warms up"]
      - {name: serving, state: running, log: ["{container} of {pod} serves on {node}"]}

  - name: never-ready
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: warming, state: running, ready: false, log: ["{container} waits for something that never comes"]}

  - name: stuck-creating
    stages:
      - {name: creating, state: waiting}

  - name: image-pull-error
    stages:
      - {name: creating, state: waiting, for: 1s}
      - name: refused
        state: waiting
        reason: ErrImagePull
        message: 'failed to pull and unpack image "{image}": not found'
        for: 5s
      - name: backing-off
        state: waiting
        reason: ImagePullBackOff
        message: 'Back-off pulling image "{image}": ErrImagePull: failed to pull and unpack image "{image}": not found'
        for: 10s
        grows: 2
        forMax: 300s
        next: refused

  - name: config-error
    stages:
      - {name: creating, state: waiting, for: 200ms}
      - {name: refused, state: waiting, reason: CreateContainerConfigError, message: 'configmap "settings" not found'}

  - name: out-of-memory
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: growing, state: running, for: 5s, forAnnotation: mooring.dev/run-for, log: ["{container} grows"]}
      - {name: killed, state: terminated, exitCode: 137, reason: OOMKilled}

  - name: ignores-sigterm
    stages:
      - {name: creating, state: waiting, for: 200ms, jitter: 200ms}
      - {name: serving, state: running, log: ["{container} of {pod} serves on {node}"]}
    stop: {for: 24h, exitCode: 0}
"""
