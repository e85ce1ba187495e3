//! Tests of the embedded server through its public API.

#![allow(
    clippy::too_many_lines,
    reason = "a test of many steps is read from its top"
)]
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod aliases;
mod budgets;
mod built_in;
mod certificates;
mod clock;
mod collection;
mod controllers;
mod conversion;
mod definitions;
mod document;
mod extending;
mod fixture;
mod fork;
mod impersonation;
mod in_force;
mod initial;
mod kube_client;
mod kubelets;
mod listing;
mod matching;
mod mutating_policies;
mod mutations;
mod namespaces;
mod objects;
mod openapi;
mod operator;
mod order_of_checks;
mod parameters;
mod persistence;
mod plugin_page;
mod plugins;
mod policies;
mod reading;
mod readme;
mod recommended;
mod removed_plugins;
mod replacing;
mod rights;
mod scaling;
mod socket;
mod tokens;
mod watching;
mod webhook_server;
mod webhooks;
mod wire;
