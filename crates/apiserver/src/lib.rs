//! A Kubernetes API server in a process, for development, tests and simulation.
