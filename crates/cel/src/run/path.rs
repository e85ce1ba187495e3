//! Walking along names through JSON, without a value for each step.

use serde_json::Value as Json;

use super::Run;
use super::attribute::bound;
use super::maybe::Maybe;
use crate::activation::Binding;
use crate::plan::{Key, Qualifier};
use crate::value::Map;
use crate::{RunError, Type, Value, cost};

impl<'v> Run<'_, 'v> {
    /// What the qualifiers of a variable that is JSON lead to. It is walked as far as there
    /// are objects and names; what is left goes from value to value.
    pub(super) fn walk(
        &mut self,
        (mut json, mut ty): (&'v Json, &'v Type),
        qualifiers: &'v [Qualifier],
        test: bool,
    ) -> Result<Maybe<'v>, RunError> {
        let (mut rest, mut optional) = (qualifiers, false);
        while let (Some((first, others)), Json::Object(fields)) =
            (rest.split_first(), json)
            && let (Key::Name(name), Type::Dyn | Type::Map(_) | Type::Object(_)) =
                (&first.key, ty)
        {
            // The step before this one has led to what can be read.
            if rest.len() < qualifiers.len() {
                self.budget.charge(cost::SELECT)?;
            }
            optional |= first.optional;
            let found = Map::declared(fields, ty, name);
            if test && others.is_empty() {
                return self.presence(found, optional);
            }
            match found {
                Some(found) => (json, ty) = found,
                None if optional && test => return Ok(Maybe::Plain(Value::Bool(false))),
                None if optional => return Ok(Maybe::Absent),
                None => {
                    self.budget.charge(cost::SELECT)?;
                    return Err(RunError::text(format!("no such key: {}", name.text())));
                }
            }
            rest = others;
        }
        if rest.len() == qualifiers.len() {
            let root = Maybe::of(bound(Binding::Json(json), ty)?);
            let root = root.forgotten(rest.is_empty());
            return self.qualify(root, rest, test);
        }
        let value = Value::from_json(json, ty);
        if !optional || value.is_ok() {
            self.budget.charge(cost::SELECT)?;
        }
        let value = value?;
        if !rest.is_empty() {
            return self.qualify_value(value, optional, rest, test);
        }
        Ok(match Maybe::of(value) {
            Maybe::Plain(value) if optional => Maybe::Present(value),
            value => value,
        })
    }

    /// `has()`: whether the field is there, also if it is null. After a `?` that costs only
    /// if it is.
    fn presence(
        &mut self,
        found: Option<(&'v Json, &'v Type)>,
        optional: bool,
    ) -> Result<Maybe<'v>, RunError> {
        let there = match found {
            None => Ok(false),
            Some((_, Type::Dyn)) => Ok(true),
            Some((json, ty)) => Value::from_json(json, ty).map(|_| true),
        };
        if !optional || matches!(there, Ok(true)) {
            self.budget.charge(cost::SELECT)?;
        }
        there.map(|there| Maybe::Plain(Value::Bool(there)))
    }
}
