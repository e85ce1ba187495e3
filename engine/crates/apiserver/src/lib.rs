//! An in-process Kubernetes API server for development, tests and simulation.
//!
//! A [`Server`] keeps objects in memory and responds as a `kube-apiserver` of the chosen
//! release does: discovery and schemas, every verb, list and watch with resource versions, the
//! four patch formats, admission, custom resources, and the controllers that a client relies
//! on in a real cluster (garbage collection, namespace deletion, disruption budgets). There
//! are three ways to send requests:
//!
//! - [`Server::in_process`]: a tower service, for `kube::Client::new`;
//! - [`Server::client`]: a small client of JSON values;
//! - [`Server::serve`]: TLS on a loopback address, with a token or a certificate, for
//!   `kubectl`.
//!
//! Time comes from a [`Clock`]. A virtual clock is stopped while a
//! request, an undelivered event or a work item is pending, and uids can be derived from a
//! seed, so that a simulation on one thread runs the same way every time.
//!
//! The path of a request: `service` or `client` creates a call, `route` finds its resource,
//! and `verb` handles it: `decode` decodes the object, `kind` defaults and validates it,
//! `plugin` admits it, `commit` stores it in the `state`, `broadcaster` sends it to watchers,
//! `trigger` enqueues what follows and `controller` reconciles it; `content_negotiation` encodes
//! the response.
//!
//! A user may do what roles and bindings allow; members of `system:masters` may do everything.
//!
//! Why a server and not mocks: `internals/decisions/0004-embedded-server-not-mocks.md`.
//!
//! It is for development and tests. Objects are stored in memory, and with a [`Storage`] also
//! on disk.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test of many steps is read from its top"
    )
)]

mod admission_configuration;
mod alias;
mod api_response;
pub mod apply;
mod audit;
mod authorization;
mod body;
mod broadcaster;
mod call;
mod client;
mod commit;
mod compress;
mod condition;
mod content_negotiation;
mod controller;
mod conversion;
pub mod credentials;
mod decode;
mod definition;
pub mod discovery;
mod disruption_budget;
mod document;
mod empty;
mod expiry;
mod identity;
mod impersonation;
mod index;
mod initial;
mod journal;
mod json_type;
mod kind;
mod meta;
mod metrics;
mod namespace;
mod nesting;
mod note;
pub mod openapi;
mod options;
pub mod patch;
mod path;
mod plugin;
mod protobuf;
mod prune;
mod query;
mod random;
mod registry;
mod resource;
mod review;
mod route;
mod selector;
pub mod serve;
mod server;
mod service;
mod size;
mod start;
mod state;
mod status;
mod storage;
mod store;
mod strict;
mod syntax;
pub mod table;
mod trigger;
mod user;
mod verb;
mod warning;
mod watch;
mod webhook_client;
mod work_queue;

pub use admission_configuration::{ConfigurationError, read_admission_configuration};
pub use alias::GroupAlias;
pub use audit::{Audit, AuditEvent};
pub use body::Body;
pub use broadcaster::EventKind;
pub use client::{Client, Delete, Items, Patch, Selector, Watch, WatchEvent};
pub use credentials::{ClientCertificate, Credentials};
pub use identity::{KeyError, TokenKey};
pub use kind::builtin::builtin_kinds;
pub use kind::event::convert_event;
pub use kind::{BuiltinKind, FieldSelector, FinalizerRule, NameRule, Stored, Write};
pub use kubemu_admission::policy::Operation;
pub use kubemu_admission::{FieldError, KubeVersion};
pub use kubemu_clock::Clock;
pub use plugin::builtin::builtin_plugins;
pub use plugin::{Attributes, Plugin, Removal};
pub use registry::Registry;
pub use resource::{Column, GroupResource, Resource, Scale, Subresource, Verb};
pub use server::{ForkOptions, Options, Server};
pub use service::InProcess;
pub use start::StartError;
pub use state::State as Cluster;
pub use status::{Cause, Details, Reason, Status};
pub use storage::{Storage, StorageError, write_private};
pub use user::User;

/// The example of the README, compiled as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
