//! Values that are written as `Name{field: value}`.

use super::{Outcome, Run, carried_on};
use crate::plan::{FieldNode, StructNode};
use crate::value::Struct;
use crate::{RunError, Value, cost};

impl<'v> Run<'_, 'v> {
    #[inline(never)]
    pub(super) fn structure(&mut self, node: &'v StructNode) -> Outcome<'v> {
        let made = carried_on(self.fields(node))?;
        self.budget.charge(cost::STRUCT)?;
        made.map(Value::from)
    }

    fn fields(&mut self, node: &'v StructNode) -> Result<Struct<'v>, RunError> {
        let mut made = Struct::new(&node.name);
        for FieldNode {
            name,
            value,
            optional,
        } in &node.fields
        {
            match self.eval(value)? {
                Value::Optional(Some(value)) if *optional => {
                    made.set(name, (*value).clone());
                }
                Value::Optional(None) if *optional => made.unset(name),
                value if *optional => {
                    return Err(RunError::text(format!(
                        "cannot initialize optional entry '{name}' from non-optional value {}",
                        value.to_text()
                    )));
                }
                value => made.set(name, value),
            }
        }
        made.checked()
    }
}
