//! The generated table of messages.

use std::collections::HashMap;
use std::sync::LazyLock;

pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::read(include_str!("../../schema/protobuf.txt")));

/// Messages by name, and the message of each kind.
#[derive(Debug, Default)]
pub(super) struct Table {
    kinds: HashMap<(String, String), String>,
    messages: HashMap<String, HashMap<u64, Field>>,
}

#[derive(Debug)]
pub(super) struct Field {
    /// The JSON name; `-` for an inlined message.
    pub(super) name: String,
    pub(super) shape: Shape,
    /// Whether a zero is a value, not an omitted field.
    pub(super) has_explicit_zero: bool,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Message(String),
    List(Box<Shape>),
    Map(Box<Shape>),
    /// A message whose first field is repeated; a list in JSON.
    Items(Box<Shape>),
    /// A time with this number of fractional digits.
    Time {
        digits: usize,
    },
    /// JSON as bytes.
    Raw,
    Quantity,
    IntOrString,
    /// A schema in the field of that number, or another value in another field.
    Either {
        number: u64,
        list: Box<Shape>,
    },
}

impl Table {
    /// Parses the lines `kind <apiVersion> <kind> <message>` and
    /// `message <name> <number>=<name>=<shape>[!] …`; malformed lines are skipped, and a test
    /// ensures that there are none.
    fn read(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["kind", version, kind, message] => {
                    let key = ((*version).to_owned(), (*kind).to_owned());
                    table.kinds.insert(key, (*message).to_owned());
                }
                ["message", name, fields @ ..] => {
                    let fields = fields.iter().filter_map(|it| Field::read(it));
                    table.messages.insert((*name).to_owned(), fields.collect());
                }
                _ => {}
            }
        }
        table
    }

    /// The message of a kind; kinds that are in every group match any version.
    pub(super) fn of_kind(&self, version: &str, kind: &str) -> Option<&str> {
        let found = [version, "*"]
            .into_iter()
            .find_map(|version| self.kinds.get(&(version.to_owned(), kind.to_owned())));
        found.map(String::as_str)
    }

    /// All fields of a message, by number.
    #[cfg(test)]
    pub(super) fn fields(&self, message: &str) -> impl Iterator<Item = (u64, &Field)> {
        let found = self.messages.get(message).into_iter().flatten();
        found.map(|(number, field)| (*number, field))
    }

    pub(super) fn field(&self, message: &str, number: u64) -> Option<&Field> {
        self.messages.get(message)?.get(&number)
    }
}

impl Field {
    fn read(text: &str) -> Option<(u64, Self)> {
        let (number, rest) = text.split_once('=')?;
        let (name, shape) = rest.split_once('=')?;
        let explicit_zero = shape.strip_suffix('!');
        let field = Self {
            name: name.to_owned(),
            shape: Shape::read(explicit_zero.unwrap_or(shape)),
            has_explicit_zero: explicit_zero.is_some(),
        };
        Some((number.parse().ok()?, field))
    }
}

impl Shape {
    fn read(text: &str) -> Self {
        if let Some((outer, inner)) = text.split_once(':') {
            let inner = Box::new(Self::read(inner));
            return match outer {
                "list" => Self::List(inner),
                "map" => Self::Map(inner),
                _ => Self::Items(inner),
            };
        }
        let schema = || Self::Message("apiextensions.v1.JSONSchemaProps".to_owned());
        let list = |shape| Box::new(Self::List(Box::new(shape)));
        match text {
            "bool" => Self::Bool,
            "int" => Self::Int,
            "double" => Self::Double,
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            "time" => Self::Time { digits: 0 },
            "microtime" => Self::Time { digits: 6 },
            "raw" => Self::Raw,
            "quantity" => Self::Quantity,
            "intorstring" => Self::IntOrString,
            "schemaorbool" => Self::Either {
                number: 2,
                list: Box::new(Self::Bool),
            },
            "schemaorlist" => Self::Either {
                number: 1,
                list: list(schema()),
            },
            "schemaorstrings" => Self::Either {
                number: 1,
                list: list(Self::Text),
            },
            message => Self::Message(message.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(shape: &Shape, found: &mut Vec<String>) {
        match shape {
            Shape::Message(name) => found.push(name.clone()),
            Shape::List(inner) | Shape::Map(inner) | Shape::Items(inner) => {
                messages(inner, found);
            }
            _ => {}
        }
    }

    #[test]
    fn two_versions_of_a_kind_have_separate_messages() {
        let field = |version, name: &str| {
            let kind = TABLE.of_kind(version, "HorizontalPodAutoscaler")?;
            let (_, spec) = TABLE.fields(kind).find(|(_, field)| field.name == "spec")?;
            let Shape::Message(spec) = &spec.shape else {
                return None;
            };
            TABLE
                .fields(spec)
                .find(|(_, field)| field.name == name)
                .map(|(number, _)| number)
        };
        assert_eq!(
            field("autoscaling/v1", "targetCPUUtilizationPercentage"),
            Some(4)
        );
        assert_eq!(field("autoscaling/v1", "metrics"), None);
        assert_eq!(field("autoscaling/v2", "metrics"), Some(4));
    }

    #[test]
    fn every_line_of_the_table_is_parsed_and_every_message_is_in_it() {
        let text = include_str!("../../schema/protobuf.txt");
        let fields: usize = text
            .lines()
            .filter(|line| line.starts_with("message "))
            .map(|line| line.split(' ').count() - 2)
            .sum();
        let read: usize = TABLE.messages.values().map(HashMap::len).sum();
        assert_eq!(read, fields);
        assert_eq!(
            TABLE.kinds.len() + TABLE.messages.len(),
            text.lines().count()
        );
        let mut found: Vec<String> = TABLE.kinds.values().cloned().collect();
        for field in TABLE.messages.values().flat_map(HashMap::values) {
            messages(&field.shape, &mut found);
        }
        for name in found {
            assert!(TABLE.messages.contains_key(&name), "{name}");
        }
    }
}
