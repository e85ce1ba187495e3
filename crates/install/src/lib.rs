//! What a cluster is given so that the operator can run in it.
//!
//! - [`permission`]: what the operator asks of the API servers, row by row, and what for
//! - [`provider`]: the kinds of bootstrap and infrastructure objects that have a name here
//! - [`role`]: the roles and bindings made of both
//! - [`controller`]: the Deployment and what stands around it
//! - [`agent`]: the agent of emergency reclaim, in a workload cluster
//! - [`monitoring`]: scraping, alerts and a dashboard
//! - [`user`]: the roles of those who write ScheduledMachines
//! - [`webhook`]: the admission policy for clusters that know no policies
//! - [`gitops`]: how GitOps tools judge a ScheduledMachine
//! - [`file`](mod@file): what is made, as files
//!
//! Pure: no client, no clock, no I/O.

pub mod agent;
mod chart;
pub mod controller;
pub mod file;
pub mod gitops;
mod kustomize;
pub mod monitoring;
pub mod permission;
pub mod pod;
pub mod provider;
pub mod role;
pub mod user;
pub mod webhook;
