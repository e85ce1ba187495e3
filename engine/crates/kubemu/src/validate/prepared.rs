//! A server with CRDs and policies, started once, of which every cluster has a fork.

use std::sync::{Mutex, PoisonError};

use kubemu_admission::KubeVersion;
use kubemu_apiserver::{ForkOptions, Server};
use kubemu_terminal::Failure;
use serde_json::Value;

use crate::document::Document;

/// The server for the objects that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct Prepared(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    version: KubeVersion,
    objects: Vec<Value>,
    server: Server,
}

impl Prepared {
    /// A fork of the server that has `documents`. `start` starts it, if the server that is kept has
    /// others.
    ///
    /// # Errors
    /// Those of `start`.
    pub(super) fn fork(
        &self,
        version: KubeVersion,
        documents: &[&Document],
        start: impl FnOnce() -> Result<Server, Failure>,
    ) -> Result<Server, Failure> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |kept: &&Kept| {
            let objects = documents.iter().map(|it| &it.object);
            kept.version == version && kept.objects.iter().eq(objects)
        };
        let server = if let Some(kept) = kept.as_ref().filter(is_it) {
            &kept.server
        } else {
            let started = Kept {
                version,
                objects: documents.iter().map(|it| it.object.clone()).collect(),
                // A fork outside of a runtime ends the work that the writes have left to do.
                server: start()?.fork(),
            };
            &kept.insert(started).server
        };
        Ok(server.fork_with(ForkOptions {
            // Other uids than those of the objects that are there, and the same in every run.
            seed: Some(1),
            ..ForkOptions::default()
        }))
    }
}
