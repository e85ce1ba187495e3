//! Field names, with the index where they were last found.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::value::Text;

/// The name of a field that is looked up in objects. Objects of one kind mostly have their
/// fields in the same order, so the field is first searched at the index where the last object
/// had it.
#[derive(Debug)]
pub(crate) struct Name {
    text: Text<'static>,
    last_index: AtomicUsize,
}

impl Name {
    pub(crate) fn new(text: impl Into<Text<'static>>) -> Self {
        Self {
            text: text.into(),
            last_index: AtomicUsize::new(0),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The index among an object's fields where it was last found: a guess for other objects.
    pub(crate) fn last_index(&self) -> usize {
        self.last_index.load(Ordering::Relaxed)
    }

    /// Records the index where it was found. Readers compare the name again, so the order in
    /// which threads see the value does not matter.
    pub(crate) fn set_last_index(&self, index: usize) {
        self.last_index.store(index, Ordering::Relaxed);
    }
}
