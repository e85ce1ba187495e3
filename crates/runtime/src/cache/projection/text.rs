//! The compact JSON text of a value, written while it is read: no other copy of it is held.

use std::fmt::{self, Write as _};

use serde::de::{
    DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use super::TOO_DEEP;

/// A text that grows up to a limit.
pub(super) struct Text {
    content: String,
    limit: usize,
    is_too_large: bool,
    is_too_deep: bool,
}

impl Text {
    /// An empty text of at most so many bytes.
    pub(super) fn with_limit(limit: usize) -> Self {
        Self {
            content: String::new(),
            limit,
            is_too_large: false,
            is_too_deep: false,
        }
    }

    /// The text as a string; null if it exceeds its limit, and [`TOO_DEEP`] if the value is
    /// nested too deep.
    pub(super) fn value(self) -> Value {
        match self {
            Self {
                is_too_large: true, ..
            } => Value::Null,
            Self {
                is_too_deep: true, ..
            } => TOO_DEEP.into(),
            Self { content, .. } => content.into(),
        }
    }

    fn push(&mut self, more: &str) {
        if self.content.len() + more.len() > self.limit {
            self.is_too_large = true;
            self.content = String::new();
        }
        if !self.is_too_large {
            self.content.push_str(more);
        }
    }

    fn push_display(&mut self, what: impl fmt::Display) {
        // Writing to a text never fails.
        let _ = write!(self, "{what}");
    }

    /// A string in quotes.
    fn push_quoted(&mut self, text: &str) {
        // The quoted string is at least as long.
        if text.len() > self.limit {
            self.is_too_large = true;
        } else if !self.is_too_large {
            self.push_display(Value::from(text));
        }
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push(more);
        Ok(())
    }
}

/// Writes what is read to a text, up to so many levels. Once the text is too large, the rest is
/// skipped.
pub(super) struct TextSeed<'a>(pub(super) &'a mut Text, pub(super) usize);

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let is_too_deep = self.1 == 0;
        self.0.is_too_deep |= is_too_deep;
        if is_too_deep || self.0.is_too_large {
            deserializer.deserialize_ignored_any(IgnoredAny)?;
            return Ok(());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.push("null");
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.push_display(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.push_display(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.push_display(value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        // In the form that is parsed as the same number.
        self.0.push_display(Value::from(value));
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.0.push_quoted(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self(text, levels) = self;
        text.push("[");
        let mut is_first = true;
        while items
            .next_element_seed(Item {
                text,
                levels: levels - 1,
                is_first,
            })?
            .is_some()
        {
            is_first = false;
        }
        text.push("]");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self(text, levels) = self;
        text.push("{");
        let mut is_first = true;
        while let Some(name) = fields.next_key::<String>()? {
            if !is_first {
                text.push(",");
            }
            is_first = false;
            text.push_quoted(&name);
            text.push(":");
            fields.next_value_seed(TextSeed(text, levels - 1))?;
        }
        text.push("}");
        Ok(())
    }
}

/// An item of a list, with the comma before it.
struct Item<'a> {
    text: &'a mut Text,
    levels: usize,
    is_first: bool,
}

impl<'de> DeserializeSeed<'de> for Item<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.is_first {
            self.text.push(",");
        }
        TextSeed(self.text, self.levels).deserialize(deserializer)
    }
}
