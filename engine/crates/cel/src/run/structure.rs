//! Values that are written as `Name{field: value}`.

use super::{Outcome, Run, recoverable};
use crate::plan::{FieldNode, StructNode};
use crate::value::Struct;
use crate::{RunError, Value, cost};

impl<'v> Run<'_, 'v> {
    #[inline(never)]
    pub(super) fn structure(&mut self, node: &'v StructNode) -> Outcome<'v> {
        let new_struct = recoverable(self.fields(node))?;
        self.budget.charge(cost::STRUCT)?;
        new_struct.map(Value::from)
    }

    fn fields(&mut self, node: &'v StructNode) -> Result<Struct<'v>, RunError> {
        let mut new_struct = Struct::new(&node.name);
        for FieldNode {
            name,
            value,
            optional,
        } in &node.fields
        {
            match self.eval(value)? {
                Value::Optional(Some(value)) if *optional => {
                    new_struct.set(name, (*value).clone());
                }
                Value::Optional(None) if *optional => new_struct.unset(name),
                value if *optional => {
                    return Err(RunError::text(format!(
                        "cannot initialize optional entry '{name}' from non-optional value {}",
                        value.to_text()
                    )));
                }
                value => new_struct.set(name, value),
            }
        }
        new_struct.checked()
    }
}
