//! The planner against a toy world: an API server, a Cluster API and a node of a few lines each.

mod crash;
mod law;
mod scenario;
mod table;
mod world;
