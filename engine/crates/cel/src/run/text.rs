//! Text, and variables that are not converted to values.

use serde_json::Value as Json;

use super::Run;
use super::fold::Slot;
use crate::library::no_such_overload;
use crate::paths::ResolvedPath;
use crate::plan::{Attribute, Node, Root};
use crate::value::{Text, characters};
use crate::{RunError, Type, Value, cost};

impl<'v> Run<'_, 'v> {
    /// [`Run::eval`], if only text matters.
    pub(super) fn text_or_size(
        &mut self,
        node: &'v Node,
    ) -> Result<TextOrSize<'v>, RunError> {
        if let Some(text) = self.borrowed_text(node)? {
            return Ok(TextOrSize::Text(Text::Borrowed(text)));
        }
        Ok(match self.eval(node)? {
            Value::String(text) => TextOrSize::Text(text),
            other => TextOrSize::Size(other.cost_size()),
        })
    }

    /// Text that is borrowed from the input, with its cost charged.
    pub(super) fn borrowed_text(
        &mut self,
        node: &'v Node,
    ) -> Result<Option<&'v str>, RunError> {
        if let Some(slot) = node.local() {
            if let Some(text) = self.local_text(slot)? {
                self.budget.charge(cost::SELECT)?;
                return Ok(Some(text));
            }
        } else if let Some((ResolvedPath::Json(Json::String(text)), attribute)) =
            self.resolved_path(node)
            && !attribute.optional
        {
            self.budget.charge_steps(attribute.steps() + cost::SELECT)?;
            return Ok(Some(text));
        } else if let Some((Json::String(text), Type::String | Type::Dyn | Type::Any)) =
            self.json(node)
        {
            self.budget.charge(cost::SELECT)?;
            return Ok(Some(text));
        }
        Ok(None)
    }

    /// The text of a comprehension's variable, if it is borrowed.
    fn local_text(&mut self, slot: usize) -> Result<Option<&'v str>, RunError> {
        let Some(place) = self.slots.get_mut(slot) else {
            return Ok(None);
        };
        match place {
            Slot::Set(Ok(Value::String(Text::Borrowed(text))), due) => {
                let (text, due) = (*text, std::mem::take(due));
                self.budget.charge_steps(due)?;
                Ok(Some(text))
            }
            _ => Ok(None),
        }
    }

    /// The JSON of a variable of the activation that has no declared type.
    pub(super) fn untyped(&self, node: &'v Node) -> Option<&'v Json> {
        let (json, ty) = self.json(node)?;
        ty.is_dynamic().then_some(json)
    }

    /// The JSON of a variable of the activation, and the type that it is read with.
    fn json(&self, node: &'v Node) -> Option<(&'v Json, &'v Type)> {
        let Node::Attribute(Attribute {
            root: Root::Variable(variable),
            qualifiers,
            test: false,
            ..
        }) = node
        else {
            return None;
        };
        let declared = self
            .declared
            .get(*variable)
            .filter(|_| qualifiers.is_empty())?;
        let json = self.activation.json(&declared.name)?;
        Some((json, &declared.ty))
    }
}

/// Text, or the size for the cost of the value in its place.
pub(super) enum TextOrSize<'v> {
    Text(Text<'v>),
    Size(u64),
}

impl TextOrSize<'_> {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Text(text) => characters(text) as u64,
            Self::Size(size) => *size,
        }
    }

    pub(super) fn test(&self, test: impl FnOnce(&str) -> bool) -> Result<bool, RunError> {
        match self {
            Self::Text(text) => Ok(test(text)),
            Self::Size(_) => no_such_overload(),
        }
    }
}
