//! The manifests that install the operator in a cluster.
//!
//! - [`permission`]: the permissions of the operator, row by row, with the reason for each
//! - [`provider`]: the named kinds of bootstrap and infrastructure objects
//! - [`capacity_target`]: the kinds whose objects ScheduledCapacities may change
//! - `capacity_policy`: who may write ScheduledCapacities about them
//! - `component`: what all objects of a component share
//! - [`role`]: the roles and bindings generated from both
//! - [`controller`]: the Deployment and the objects around it
//! - [`agent`]: the emergency reclaim agent, in a workload cluster
//! - `dashboard`: the page about all machines, behind a proxy
//! - [`monitoring`]: scraping, alerts and a dashboard of Grafana
//! - [`user`]: the roles of users who write ScheduledMachines
//! - [`webhook`]: the admission policy for clusters without admission policies
//! - [`gitops`]: health checks of a ScheduledMachine for GitOps tools
//! - [`file`](mod@file): the generated manifests, as files
//!
//! Pure: no client, no clock, no I/O. Why the chart is made here too:
//! `internals/decisions/0042-manifests-and-chart-from-one-rendering.md`.

pub mod agent;
pub mod capacity_policy;
pub mod capacity_target;
mod chart;
mod component;
pub mod controller;
mod dashboard;
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
