//! A simulated Cluster API: clusters, machines, providers, nodes and pods.
