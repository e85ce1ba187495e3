//! The objects of one kind.

use std::io::{self, Write};

use crate::explain::unreadable::Unreadable;
use crate::plain;

/// The objects of one kind that were found.
#[derive(Debug)]
pub(super) struct Listed<R> {
    /// The rows in their order.
    pub(super) rows: Vec<R>,
    /// Why some cannot be listed.
    pub(super) unreadable: Vec<Unreadable>,
}

impl<R> Default for Listed<R> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<R> From<Vec<R>> for Listed<R> {
    fn from(rows: Vec<R>) -> Self {
        Self {
            rows,
            unreadable: Vec::new(),
        }
    }
}

impl<R> From<Unreadable> for Listed<R> {
    fn from(unreadable: Unreadable) -> Self {
        Self {
            rows: Vec::new(),
            unreadable: vec![unreadable],
        }
    }
}

impl<R> Listed<R> {
    /// Whether there is nothing to print.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.unreadable.is_empty()
    }

    /// Prints that objects may not be read, and with `print` the rows, if there are any.
    pub(super) fn print_with(
        &self,
        out: &mut dyn Write,
        print: impl FnOnce(&mut dyn Write, &[R]) -> io::Result<()>,
    ) -> io::Result<()> {
        for unreadable in &self.unreadable {
            writeln!(out, "{}", plain::line(&unreadable.text()))?;
        }
        if self.rows.is_empty() {
            return Ok(());
        }
        print(out, &self.rows)
    }
}
