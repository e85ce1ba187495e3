//! Names of fields, with where they were found.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::value::Text;

/// The name of a field that is looked up in objects. Objects of one kind mostly have their
/// fields in one order, so that the next one is first looked at where the last one had it.
#[derive(Debug)]
pub(crate) struct Name {
    text: Text<'static>,
    found: AtomicUsize,
}

impl Name {
    pub(crate) fn new(text: impl Into<Text<'static>>) -> Self {
        Self {
            text: text.into(),
            found: AtomicUsize::new(0),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The place among an object's fields where it was last: a guess about any other one.
    pub(crate) fn guess(&self) -> usize {
        self.found.load(Ordering::Relaxed)
    }

    /// Notes where it was found. Whoever reads it compares the name again, so that it does
    /// not matter in which order threads see it.
    pub(crate) fn found_at(&self, place: usize) {
        self.found.store(place, Ordering::Relaxed);
    }
}
