//! The unknown fields of an object.

use crate::field::Path;

/// The total size, in bytes, of the paths that are kept.
///
/// The API server names all unknown fields of a custom object. Their paths can be longer than the
/// object by far: each of some hundred thousand fields can be below one key of a MiB. Those of an
/// object in which not every field is unknown, and deep, fit.
const LIMIT: usize = 8 * 1024 * 1024;

/// The paths of the unknown fields so far, as many as fit into [`LIMIT`].
#[derive(Debug)]
pub(super) struct UnknownFields {
    paths: Vec<String>,
    /// How many more bytes are kept.
    room: usize,
}

impl UnknownFields {
    pub(super) fn new() -> Self {
        Self {
            paths: Vec::new(),
            room: LIMIT,
        }
    }

    /// Keeps nothing.
    pub(super) fn ignored() -> Self {
        Self {
            paths: Vec::new(),
            room: 0,
        }
    }

    pub(super) fn add(&mut self, path: Path<'_>) {
        if self.room > 0 {
            let path = path.to_string();
            self.room = self.room.saturating_sub(path.len());
            self.paths.push(path);
        }
    }

    /// How many there are, for [`truncate`](Self::truncate).
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Forgets all but the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        let gone = self.paths.drain(length.min(self.paths.len())..);
        self.room += gone.map(|it| it.len()).sum::<usize>();
    }

    pub(super) fn into_sorted(mut self) -> Vec<String> {
        self.paths.sort_unstable();
        self.paths
    }
}
