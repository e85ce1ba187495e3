//! Attributes: values and the fields and indexes read from them.

use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use super::optional::MaybeOptional;
use super::path::starts_with_name;
use super::{Outcome, Run, recoverable};
use crate::activation::Binding;
use crate::library::no_such_overload;
use crate::library::standard::{index, position};
use crate::name::Name;
use crate::plan::{Attribute, Key, Node, Qualifier, Root};
use crate::value::{List, Map, unreadable};
use crate::{RunError, Type, Value, cost};

/// The result of reading a field or index.
enum FieldRead<'v> {
    Value(Value<'v>),
    /// Absent, which is only allowed after `?`.
    Absent,
    /// An item of a list that cannot be read. The API server finds it, and fails where it is used.
    Unreadable(RunError),
}

/// A variable as provided. JSON is not read until it is known how much of it is needed.
enum VariableRead<'v> {
    Json(&'v Json, &'v Type),
    Value(Value<'v>),
    /// An object whose fields are computed on demand; it has no value as a whole.
    Lazy,
}

impl<'v> Run<'_, 'v> {
    /// The value of an attribute. Fields and indexes cost one each. So does the name at the
    /// start, except for conditionals and presence tests. A presence test refunds the cost of
    /// the name, also from a conditional, which has none.
    #[inline(never)]
    pub(super) fn attribute(&mut self, attribute: &'v Attribute) -> Outcome<'v> {
        if attribute.path.is_some()
            && let Some(cached) = self.cached_value(attribute, cost::SELECT)
        {
            return cached.map(MaybeOptional::wrapped);
        }
        let value = match &attribute.root {
            _ if attribute.test || !attribute.qualifiers.is_empty() => None,
            Root::Local(slot) => Some(self.local(*slot)),
            Root::Variable(variable) => Some(self.whole_variable(*variable)),
            _ => None,
        };
        let Some(value) = value else {
            return self
                .attribute_or_none(attribute)
                .map(MaybeOptional::wrapped);
        };
        let value = recoverable(value)?;
        self.budget.charge(cost::SELECT)?;
        match value {
            Ok(Value::Optional(Some(inner))) => {
                Ok(Value::some(Arc::unwrap_or_clone(inner).read_back()))
            }
            value => value,
        }
    }

    /// [`Run::attribute`], with an optional value unwrapped.
    pub(super) fn attribute_or_none(
        &mut self,
        attribute: &'v Attribute,
    ) -> Result<MaybeOptional<'v>, RunError> {
        if attribute.path.is_some()
            && let Some(cached) = self.cached_value(attribute, cost::SELECT)
        {
            return cached;
        }
        self.attribute_uncached(attribute)
    }

    #[inline(never)]
    fn attribute_uncached(
        &mut self,
        attribute: &'v Attribute,
    ) -> Result<MaybeOptional<'v>, RunError> {
        let value = recoverable(self.resolve(attribute))?;
        match (&attribute.root, attribute.test) {
            (Root::Conditional(_) | Root::OptMap(_), true) => {
                self.budget.refund(cost::SELECT);
            }
            (Root::Conditional(_) | Root::OptMap(_), false) | (_, true) => {}
            (_, false) => self.budget.charge(cost::SELECT)?,
        }
        value
    }

    /// The value of a branch or a computed index: the API server resolves the attribute there
    /// and does not charge for its name again.
    pub(super) fn inner(
        &mut self,
        node: &'v Node,
    ) -> Result<MaybeOptional<'v>, RunError> {
        match node {
            Node::Attribute(attribute) => match self.cached_value(attribute, 0) {
                Some(cached) => cached,
                None => self.resolve(attribute),
            },
            other => self
                .eval_optional(other)
                .map(|value| value.without_schema(true)),
        }
    }

    fn resolve(
        &mut self,
        attribute: &'v Attribute,
    ) -> Result<MaybeOptional<'v>, RunError> {
        let qualifiers = &*attribute.qualifiers;
        let root = match &attribute.root {
            Root::Variable(variable) => match self.variable(*variable)? {
                VariableRead::Json(json, ty) => {
                    return self.walk((json, ty), qualifiers, attribute.test);
                }
                VariableRead::Value(value) => MaybeOptional::of(value),
                VariableRead::Lazy => {
                    return self.lazy(*variable, qualifiers, attribute.test);
                }
            },
            Root::Local(slot) => match self.local(*slot)? {
                Value::Map(Map::Json(fields, ty)) if starts_with_name(qualifiers) => {
                    return self.walk_fields((fields, ty), qualifiers, attribute.test);
                }
                value => MaybeOptional::of(value),
            },
            Root::Value(node) => self.eval_optional(node)?,
            Root::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                let result = self.eval_bool(condition);
                let branch = if self.outcome(result)? {
                    self.inner(yes)?
                } else {
                    self.inner(no)?
                };
                // The branch has already read its own optional value.
                return self.qualify(branch, qualifiers, attribute.test);
            }
            Root::OptMap(parts) => self.opt_map(parts)?,
        };
        let root = root.without_schema(qualifiers.is_empty());
        self.qualify(root, qualifiers, attribute.test)
    }

    fn variable(&mut self, variable: usize) -> Result<VariableRead<'v>, RunError> {
        let Some(declared) = self.declared.get(variable) else {
            return Err(RunError::text("no such attribute"));
        };
        let Some(binding) = self.activation.variable(&declared.name) else {
            return Err(no_variable(&declared.name));
        };
        match binding? {
            Binding::Json(json) => Ok(VariableRead::Json(json, &declared.ty)),
            Binding::Lazy => Ok(VariableRead::Lazy),
            other => bound(other, &declared.ty).map(VariableRead::Value),
        }
    }

    /// The value of a variable of which no field is read.
    fn whole_variable(&mut self, variable: usize) -> Outcome<'v> {
        match self.variable(variable)? {
            VariableRead::Json(json, ty) => bound(Binding::Json(json), ty),
            VariableRead::Value(value) => Ok(value),
            VariableRead::Lazy => {
                let name = self.declared.get(variable).map(|it| &*it.name);
                Err(no_variable(name.unwrap_or_default()))
            }
        }
    }

    /// The value of qualifiers on a variable whose fields are computed on demand. A presence
    /// test computes the field too, so the test returns the field's error.
    fn lazy(
        &mut self,
        variable: usize,
        qualifiers: &'v [Qualifier],
        test: bool,
    ) -> Result<MaybeOptional<'v>, RunError> {
        let declared = self.declared.get(variable);
        let (Some(declared), Some((first, rest))) = (declared, qualifiers.split_first())
        else {
            return Err(no_variable(declared.map_or("", |it| &*it.name)));
        };
        let Key::Name(field) = &first.key else {
            return Err(no_variable(&declared.name));
        };
        let field = field.text();
        if !first.optional {
            self.budget.charge(cost::SELECT)?;
        }
        let ty = match &declared.ty {
            Type::Object(object) => object.field(field).map_or(&DYN, |field| &field.ty),
            _ => &DYN,
        };
        let value = match self.activation.field(&declared.name, field) {
            Some(binding) => bound(binding?, ty)?,
            None if test && rest.is_empty() => {
                return Ok(MaybeOptional::Plain(Value::Bool(false)));
            }
            None if first.optional => return Ok(absent_result(test)),
            None => return Err(RunError::text(format!("no such key: {field}"))),
        };
        if first.optional {
            self.budget.charge(cost::SELECT)?;
        }
        match (rest, test) {
            ([], true) => Ok(MaybeOptional::Plain(Value::Bool(true))),
            ([], false) if first.optional => Ok(MaybeOptional::Present(value)),
            ([], false) => Ok(MaybeOptional::of(value)),
            _ => self.qualify_value(value, first.optional, rest, test),
        }
    }

    pub(super) fn qualify(
        &mut self,
        root: MaybeOptional<'v>,
        qualifiers: &'v [Qualifier],
        test: bool,
    ) -> Result<MaybeOptional<'v>, RunError> {
        match root {
            root if qualifiers.is_empty() => Ok(root),
            MaybeOptional::Plain(value) => {
                self.qualify_value(value, false, qualifiers, test)
            }
            MaybeOptional::Present(value) => {
                self.qualify_value(value, true, qualifiers, test)
            }
            MaybeOptional::Absent => Ok(absent_result(test)),
        }
    }

    /// [`Run::qualify`] for a value; `optional` if a `?` precedes.
    pub(super) fn qualify_value(
        &mut self,
        mut value: Value<'v>,
        mut optional: bool,
        qualifiers: &'v [Qualifier],
        test: bool,
    ) -> Result<MaybeOptional<'v>, RunError> {
        let Some((last, before)) = qualifiers.split_last() else {
            return Ok(MaybeOptional::Plain(value));
        };
        for (at, qualifier) in before.iter().enumerate() {
            optional |= qualifier.optional;
            match self.step(&value, qualifier, optional)? {
                FieldRead::Value(found) => value = found,
                FieldRead::Absent => return Ok(absent_result(test)),
                FieldRead::Unreadable(why) => {
                    let next = qualifiers.get(at + 1);
                    if !optional && !next.is_some_and(|next| next.optional) {
                        self.budget.charge(cost::SELECT)?;
                    }
                    return Err(why);
                }
            }
        }
        optional |= last.optional;
        if test {
            return self.test(&value, last, optional).map(MaybeOptional::Plain);
        }
        Ok(match self.step(&value, last, optional)? {
            FieldRead::Value(found) => match MaybeOptional::of(found) {
                MaybeOptional::Plain(found) if optional => MaybeOptional::Present(found),
                found => found,
            },
            FieldRead::Absent => MaybeOptional::Absent,
            FieldRead::Unreadable(why) => return Err(why),
        })
    }

    /// Reads one field or index. An optional qualifier costs only if it exists, others also if
    /// they do not.
    fn step(
        &mut self,
        value: &Value<'v>,
        qualifier: &'v Qualifier,
        optional: bool,
    ) -> Result<FieldRead<'v>, RunError> {
        let found = match &qualifier.key {
            Key::Name(name) => {
                if let Value::Map(Map::Json(fields, ty)) = value {
                    return self.field((fields, ty), name, optional);
                }
                select(value, name.text(), optional)
            }
            Key::Const(key) => {
                let usable = key.as_qualifier();
                usable.and_then(|()| at(value, key.clone(), optional))
            }
            Key::Computed(node) => {
                let key = recoverable(self.inner(node))?;
                key.and_then(|key| {
                    let key = key.wrapped();
                    key.as_qualifier()?;
                    at(value, key, optional)
                })
            }
        };
        if !optional
            || matches!(found, Ok(FieldRead::Value(_) | FieldRead::Unreadable(_)))
        {
            self.budget.charge(cost::SELECT)?;
        }
        found
    }

    /// [`Run::step`] into a field of an object, the most common case.
    fn field(
        &mut self,
        (fields, ty): (&'v JsonMap<String, Json>, &'v Type),
        name: &Name,
        optional: bool,
    ) -> Result<FieldRead<'v>, RunError> {
        match Map::declared(fields, ty, name) {
            Some((json, ty)) => {
                let value = Value::from_json(json, ty);
                if !optional || value.is_ok() {
                    self.budget.charge(cost::SELECT)?;
                }
                value.map(FieldRead::Value)
            }
            None if optional => Ok(FieldRead::Absent),
            None => {
                self.budget.charge(cost::SELECT)?;
                Err(RunError::text(format!("no such key: {}", name.text())))
            }
        }
    }

    /// `has()`: whether the field exists, also if it is null. After a `?` it costs only if the
    /// field exists.
    fn test(
        &mut self,
        value: &Value<'v>,
        qualifier: &'v Qualifier,
        optional: bool,
    ) -> Outcome<'v> {
        let found = has(value, qualifier);
        if !optional || matches!(found, Ok(Value::Bool(true))) {
            self.budget.charge(cost::SELECT)?;
        }
        found
    }
}

/// The result of an attribute that ends before its last qualifier.
pub(super) fn absent_result<'v>(test: bool) -> MaybeOptional<'v> {
    if test {
        MaybeOptional::Plain(Value::Bool(false))
    } else {
        MaybeOptional::Absent
    }
}

fn has<'v>(value: &Value<'v>, qualifier: &Qualifier) -> Outcome<'v> {
    let Key::Name(name) = &qualifier.key else {
        return no_such_overload();
    };
    let field = name.text();
    match value {
        Value::Map(map) => match map.field(field) {
            Some(value) => value.map(|_| Value::Bool(true)),
            None => Ok(Value::Bool(false)),
        },
        Value::Struct(it) => Ok(Value::Bool(it.has(field))),
        Value::List(_) => Err(RunError::text(NAMED_ITEM)),
        // A value without fields does not have this one, and an optional value inside another
        // value has none.
        _ => Ok(Value::Bool(false)),
    }
}

fn no_variable(name: &str) -> RunError {
    RunError::text(format!("no such attribute(s): {name}"))
}

/// The API server's error if a field of a list is read.
const NAMED_ITEM: &str = "unsupported index type 'string' in list";

static DYN: Type = Type::Dyn;

pub(super) fn bound<'v>(binding: Binding<'v>, ty: &'v Type) -> Outcome<'v> {
    match (binding, ty) {
        // A variable may be null, whatever its declared type is.
        (Binding::Json(json), _) if json.is_null() => Ok(Value::Null),
        (Binding::Json(json), ty) => Value::from_json(json, ty),
        (Binding::Optional(None), _) => Ok(Value::Optional(None)),
        // The API server loses the schema of optional lists and objects: names in them are as
        // in JSON.
        (Binding::Optional(Some(json)), ty) => {
            let ty = match ty {
                Type::Optional(inner) if !json.is_object() && !json.is_array() => inner,
                _ => &DYN,
            };
            // A value that cannot be read is there: only its use fails.
            let value = Value::from_json(json, ty);
            Ok(Value::some(value.unwrap_or_else(|why| unreadable(&why))))
        }
        (Binding::Value(value), _) => Ok(value),
        (Binding::Lazy, _) => no_such_overload(),
    }
}

fn select<'v>(
    value: &Value<'v>,
    field: &str,
    optional: bool,
) -> Result<FieldRead<'v>, RunError> {
    match value {
        Value::Map(map) => match map.field(field) {
            Some(value) => value.map(FieldRead::Value),
            None if optional => Ok(FieldRead::Absent),
            None => Err(RunError::text(format!("no such key: {field}"))),
        },
        Value::Struct(it) if optional && !it.has(field) => Ok(FieldRead::Absent),
        Value::Struct(it) => it.read(field).map(FieldRead::Value),
        Value::List(_) => Err(RunError::text(NAMED_ITEM)),
        _ if optional => Ok(FieldRead::Absent),
        // A value without fields does not have this one.
        _ => Err(RunError::text(format!("no such key: {field}"))),
    }
}

fn at<'v>(
    value: &Value<'v>,
    key: Value<'v>,
    optional: bool,
) -> Result<FieldRead<'v>, RunError> {
    match value {
        Value::Map(map) if optional => match map.get(&key) {
            Some(value) => value.map(FieldRead::Value),
            None => Ok(FieldRead::Absent),
        },
        Value::List(list) if optional => {
            let index = match key {
                Value::Int(index) => usize::try_from(index).ok(),
                Value::Uint(index) => usize::try_from(index).ok(),
                _ => return no_such_overload(),
            };
            Ok(index.map_or(FieldRead::Absent, |index| item(list, index)))
        }
        Value::List(list) => Ok(item(list, position(list, &key)?)),
        Value::Map(_) => index(&[value.clone(), key]).map(FieldRead::Value),
        _ if optional => Ok(FieldRead::Absent),
        // A value without items does not have this one.
        _ => Err(match key {
            Value::Int(key) => RunError::text(format!("no such key: {key}")),
            Value::Uint(key) => RunError::text(format!("no such key: {key}")),
            Value::Bool(key) => RunError::text(format!("no such key: {key}")),
            Value::String(key) => RunError::text(format!("no such key: {}", &*key)),
            _ => return no_such_overload(),
        }),
    }
}

fn item<'v>(list: &List<'v>, index: usize) -> FieldRead<'v> {
    match list.get(index) {
        Some(Ok(value)) => FieldRead::Value(value),
        Some(Err(why)) => FieldRead::Unreadable(why),
        None => FieldRead::Absent,
    }
}
