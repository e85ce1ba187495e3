//! Kubernetes' API server and admission in a process, as commands of a program: `serve`, `validate`,
//! `cel`, `diff` and `test`.
//!
//! Other programs have these commands and their parts too: the reader of manifests, the flags and
//! the kubeconfig of a server, and the output formats.

pub mod apply;
pub mod cel;
pub mod data_dir;
pub mod diff;
pub mod document;
pub mod kubeconfig;
pub mod output;
pub mod parallel;
pub mod serve;
pub mod server_flag;
pub mod test;
pub mod validate;

pub use output::Format;
