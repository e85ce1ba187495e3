//! The types of expressions that the generator supports.

use std::fmt;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A type without parameters, by its name in the tables of [`super::table`]. `T` is a
    /// placeholder for any type.
    Plain(String),
    /// `list(T)`.
    List(Box<Kind>),
    /// `map(T)`, with strings as keys.
    Map(Box<Kind>),
    /// `optional(T)`.
    Optional(Box<Kind>),
}

impl Kind {
    pub(super) fn plain(name: &str) -> Self {
        Self::Plain(name.to_owned())
    }

    pub(super) fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    pub(super) fn map(of: Self) -> Self {
        Self::Map(Box::new(of))
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(Box::new(of))
    }

    pub(super) fn is(&self, name: &str) -> bool {
        matches!(self, Self::Plain(own) if own == name)
    }

    /// Parses a type of a table. An unknown word is a plain type of that name.
    pub(super) fn read(text: &str) -> Self {
        let inner = |prefix: &str| {
            let rest = text.strip_prefix(prefix)?.strip_suffix(')')?;
            Some(Self::read(rest))
        };
        if let Some(of) = inner("list(") {
            Self::list(of)
        } else if let Some(of) = inner("map(") {
            Self::map(of)
        } else if let Some(of) = inner("optional(") {
            Self::optional(of)
        } else {
            Self::plain(text)
        }
    }

    /// The type with `T` replaced.
    pub(super) fn with(&self, replacement: &Self) -> Self {
        match self {
            Self::Plain(name) if name == "T" => replacement.clone(),
            Self::Plain(_) => self.clone(),
            Self::List(of) => Self::list(of.with(replacement)),
            Self::Map(of) => Self::map(of.with(replacement)),
            Self::Optional(of) => Self::optional(of.with(replacement)),
        }
    }

    /// The value of `T` with which this pattern is `wanted`; `None` if there is none.
    pub(super) fn unify(&self, wanted: &Self) -> Option<Parameter> {
        match (self, wanted) {
            (Self::Plain(name), _) if name == "T" => {
                Some(Parameter::Only(wanted.clone()))
            }
            (Self::List(one), Self::List(other))
            | (Self::Map(one), Self::Map(other))
            | (Self::Optional(one), Self::Optional(other)) => one.unify(other),
            _ => (self == wanted).then_some(Parameter::Any),
        }
    }
}

/// The value of `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// Any type: `T` does not occur.
    Any,
    /// Only this type.
    Only(Kind),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(name) => f.write_str(name),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(of) => write!(f, "map({of})"),
            Self::Optional(of) => write!(f, "optional({of})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_as_it_is_printed() {
        for text in ["int", "list(int)", "map(list(string))", "optional(T)"] {
            assert_eq!(Kind::read(text).to_string(), text);
        }
    }

    #[test]
    fn a_pattern_determines_its_parameter() {
        let wanted = Kind::read("list(map(int))");
        assert_eq!(
            Kind::read("list(T)").unify(&wanted),
            Some(Parameter::Only(Kind::read("map(int)")))
        );
        assert_eq!(Kind::read("map(T)").unify(&wanted), None);
        assert_eq!(wanted.unify(&wanted), Some(Parameter::Any));
    }
}
