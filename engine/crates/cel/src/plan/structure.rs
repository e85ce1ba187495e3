//! Values that are written as `Name{field: value}`.

use std::sync::Arc;

use super::{FieldNode, Node, Planned, Planner, StructNode};
use crate::RunError;
use crate::ast::{Expr, FieldEntry};
use crate::check::{Reference, is_patch_type};

impl Planner<'_> {
    /// Rejects the name of a patch type as a value: Kubernetes creates no program from it.
    pub(super) fn check_type(&self, expr: &Expr) -> Planned<()> {
        match self.tree.references.get(expr.id) {
            Some(Reference::Type(name)) if is_patch_type(name) => Err(RunError::text(
                format!("reference to undefined type: {name}"),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn structure(
        &mut self,
        name: &Arc<str>,
        from: &[FieldEntry],
    ) -> Planned<Node> {
        let mut fields = Vec::with_capacity(from.len());
        for field in from {
            fields.push(FieldNode {
                name: Arc::clone(&field.name),
                value: self.node(&field.value)?,
                optional: field.optional,
            });
        }
        let name = Arc::clone(name);
        Ok(Node::Struct(Box::new(StructNode { name, fields })))
    }
}
