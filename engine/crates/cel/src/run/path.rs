//! Follows names through JSON, without creating a value for each step.

use serde_json::{Map as JsonMap, Value as Json};

use super::Run;
use super::attribute::{absent_result, bound};
use super::optional::MaybeOptional;
use crate::activation::Binding;
use crate::name::Name;
use crate::plan::{Key, Qualifier};
use crate::value::Map;
use crate::{RunError, Type, Value, cost};

impl<'v> Run<'_, 'v> {
    /// The result of qualifiers on a variable that is JSON.
    pub(super) fn walk(
        &mut self,
        (json, ty): (&'v Json, &'v Type),
        qualifiers: &'v [Qualifier],
        test: bool,
    ) -> Result<MaybeOptional<'v>, RunError> {
        if let Some(fields) = fields(json, ty)
            && starts_with_name(qualifiers)
        {
            return self.walk_fields((fields, ty), qualifiers, test);
        }
        let root = MaybeOptional::of(bound(Binding::Json(json), ty)?);
        let root = root.without_schema(qualifiers.is_empty());
        self.qualify(root, qualifiers, test)
    }

    /// The result of qualifiers on an object; the first is a name. They are followed as long as
    /// there are objects and names; the rest is read from value to value.
    pub(super) fn walk_fields(
        &mut self,
        (mut object, mut ty): (&'v JsonMap<String, Json>, &'v Type),
        qualifiers: &'v [Qualifier],
        test: bool,
    ) -> Result<MaybeOptional<'v>, RunError> {
        let (mut rest, mut optional) = (qualifiers, false);
        let mut last = None;
        while let Some((first, others)) = rest.split_first()
            && let Key::Name(name) = &first.key
        {
            // The previous step resulted in JSON that can be read as a value.
            if rest.len() < qualifiers.len() {
                self.budget.charge(cost::SELECT)?;
            }
            optional |= first.optional;
            let found = Map::declared(object, ty, name);
            if test && others.is_empty() {
                return self.presence(found, optional);
            }
            let Some((json, its)) = found else {
                return self.missing(name, optional, test);
            };
            (last, rest) = (Some((json, its)), others);
            match fields(json, its) {
                Some(inner) => (object, ty) = (inner, its),
                None => break,
            }
        }
        let Some((json, ty)) = last else {
            return self.qualify_value(
                Value::Map(Map::Json(object, ty)),
                false,
                qualifiers,
                test,
            );
        };
        let value = Value::from_json(json, ty);
        if !optional || value.is_ok() {
            self.budget.charge(cost::SELECT)?;
        }
        let value = value?;
        if !rest.is_empty() {
            return self.qualify_value(value, optional, rest, test);
        }
        Ok(match MaybeOptional::of(value) {
            MaybeOptional::Plain(value) if optional => MaybeOptional::Present(value),
            value => value,
        })
    }

    /// The result for a field that does not exist.
    fn missing(
        &mut self,
        name: &Name,
        optional: bool,
        test: bool,
    ) -> Result<MaybeOptional<'v>, RunError> {
        if optional {
            return Ok(absent_result(test));
        }
        self.budget.charge(cost::SELECT)?;
        Err(RunError::text(format!("no such key: {}", name.text())))
    }

    /// `has()`: whether the field exists, also if it is null. After a `?` it costs only if the
    /// field exists.
    fn presence(
        &mut self,
        found: Option<(&'v Json, &'v Type)>,
        optional: bool,
    ) -> Result<MaybeOptional<'v>, RunError> {
        let is_present = match found {
            None => Ok(false),
            Some((_, ty)) if ty.is_dynamic() => Ok(true),
            Some((json, ty)) => Value::from_json(json, ty).map(|_| true),
        };
        if !optional || matches!(is_present, Ok(true)) {
            self.budget.charge(cost::SELECT)?;
        }
        is_present.map(|is_present| MaybeOptional::Plain(Value::Bool(is_present)))
    }
}

/// The fields of an object that is read by name.
fn fields<'v>(json: &'v Json, ty: &Type) -> Option<&'v JsonMap<String, Json>> {
    match (json, ty) {
        (
            Json::Object(fields),
            Type::Dyn | Type::Any | Type::Map(_) | Type::Object(_),
        ) => Some(fields),
        _ => None,
    }
}

/// Whether the first qualifier is a field.
pub(super) fn starts_with_name(qualifiers: &[Qualifier]) -> bool {
    matches!(
        qualifiers,
        [
            Qualifier {
                key: Key::Name(_),
                ..
            },
            ..
        ]
    )
}
