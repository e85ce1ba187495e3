//! Conflicts: fields that other managers have set to other values.

use super::element::Element;
use super::record::Id;
use super::set::FieldSet;
use crate::status::{Cause, Details, Reason, Status};

/// The conflicting fields, by the manager that owns them.
#[derive(Clone, Debug, Default)]
pub(super) struct Conflicts(Vec<(Id, Vec<Element>)>);

impl Conflicts {
    /// Adds every path of `set`, owned by `id`.
    pub(super) fn add(&mut self, id: &Id, set: &FieldSet) {
        self.0
            .extend(set.paths().into_iter().map(|it| (id.clone(), it)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The conflicts on paths that are not in `allowed`.
    pub(super) fn without(mut self, allowed: &FieldSet) -> Self {
        self.0.retain(|it| !allowed.has_path(&it.1));
        self
    }

    /// 409 with each field and its manager.
    pub(super) fn to_status(&self) -> Status {
        let causes = self
            .0
            .iter()
            .map(|(id, path)| {
                let message = format!("conflict with {}", id.described());
                Cause::new("FieldManagerConflict", print(path), message)
            })
            .collect();
        Status::new(409, Reason::Conflict, self.message()).with_details(Details {
            causes,
            ..Details::default()
        })
    }

    fn message(&self) -> String {
        if let [(id, path)] = self.0.as_slice() {
            let (id, path) = (id.described(), print(path));
            return format!("Apply failed with 1 conflict: conflict with {id}: {path}");
        }
        let mut lines: Vec<String> = Vec::new();
        let mut last = None;
        for (id, path) in &self.0 {
            if last != Some(id) {
                lines.push(format!("conflicts with {}:", id.described()));
                last = Some(id);
            }
            lines.push(format!("- {}", print(path)));
        }
        let count = self.0.len();
        format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
    }
}

fn print(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}
