//! Values that are written as `Name{field: value}`.

use std::sync::Arc;

use super::{FieldNode, Node, Planned, Planner, StructNode};
use crate::ast::FieldEntry;

impl Planner<'_> {
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
