//! Which values may be passed for a type.

use super::Value;
use crate::Type;

impl Value<'_> {
    /// Whether it may be passed for a type, judged by its kind.
    pub(crate) fn may_be(&self, ty: &Type) -> bool {
        match ty {
            Type::Dyn | Type::Any | Type::Param(_) | Type::Error => true,
            Type::IntOrString => matches!(self, Value::Int(_) | Value::String(_)),
            Type::Nullable(inner) => self.is_null() || self.may_be(inner),
            Type::Null => self.is_null(),
            Type::Bool => matches!(self, Value::Bool(_)),
            Type::Int => matches!(self, Value::Int(_)),
            Type::Uint => matches!(self, Value::Uint(_)),
            Type::Double => matches!(self, Value::Double(_)),
            Type::String => matches!(self, Value::String(_)),
            Type::Bytes => matches!(self, Value::Bytes(_)),
            Type::Timestamp | Type::Date => matches!(self, Value::Timestamp(_)),
            Type::Duration => matches!(self, Value::Duration(_)),
            // The first item decides for all; an item that cannot be read has no type.
            Type::List(list) => match self {
                Value::List(items) => match items.get(0) {
                    Some(Ok(first)) => first.may_be(&list.item),
                    Some(Err(_)) => {
                        list.item.is_dynamic()
                            || matches!(list.item, Type::Param(_) | Type::Error)
                    }
                    None => true,
                },
                _ => false,
            },
            Type::Map(_) => matches!(self, Value::Map(_)),
            Type::Object(object) => match self {
                Value::Struct(it) => it.name() == object.name(),
                _ => matches!(self, Value::Map(_)),
            },
            Type::Optional(_) => matches!(self, Value::Optional(_)),
            Type::Type(_) => matches!(self, Value::Type(_)),
            Type::Abstract(name) => self.type_name() == &**name,
        }
    }
}
