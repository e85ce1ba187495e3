//! Bounds of the sizes of values.

use std::collections::BTreeMap;

use super::path::Step;

/// The maximum sizes of a value and of its contents: the shape of a [`Type`](crate::Type) with
/// a size at each place.
#[derive(Clone, Debug)]
pub struct Bounds {
    max_size: u64,
    contents: Contents,
}

#[derive(Clone, Debug)]
enum Contents {
    None,
    Items(Box<Bounds>),
    Values(Box<Entries>),
    Fields(BTreeMap<String, Bounds>),
}

/// The entries of a map.
#[derive(Clone, Debug)]
struct Entries {
    /// The maximum size of a key.
    key: u64,
    value: Bounds,
    /// Whether the size of a value that is selected by its key as a field is known too.
    are_fields: bool,
}

impl Bounds {
    /// A value without contents: text of at most this number of characters, bytes, or a number,
    /// whose size is 0 in the API server.
    pub const fn of_size(max_size: u64) -> Self {
        Self {
            max_size,
            contents: Contents::None,
        }
    }

    /// A list of at most this number of items.
    pub fn list(max_size: u64, item: Self) -> Self {
        Self {
            max_size,
            contents: Contents::Items(Box::new(item)),
        }
    }

    /// A map of at most this number of entries. The API server uses the size 0 for its keys.
    pub fn map(max_size: u64, value: Self) -> Self {
        Self::map_of(max_size, 0, value)
    }

    /// A map of at most this number of entries, of which each key has at most the size `key`.
    pub fn map_of(max_size: u64, key: u64, value: Self) -> Self {
        let entries = Entries {
            key,
            value,
            are_fields: false,
        };
        Self {
            max_size,
            contents: Contents::Values(Box::new(entries)),
        }
    }

    /// The same map, of which the size of a value is also known if an expression selects it as a
    /// field, `map.key`: the API server knows it of the attributes of a device, and of no other map.
    /// Anything else than a map is returned unchanged.
    #[must_use]
    pub fn with_fields(mut self) -> Self {
        if let Contents::Values(entries) = &mut self.contents {
            entries.are_fields = true;
        }
        self
    }

    /// An object with these fields, by their JSON names. Fields whose names cannot be
    /// [escaped](crate::escape) are left out.
    pub fn object<N: AsRef<str>>(fields: impl IntoIterator<Item = (N, Self)>) -> Self {
        let fields = fields
            .into_iter()
            .filter_map(|(name, bounds)| Some((crate::escape(name.as_ref())?, bounds)));
        Self {
            max_size: 0,
            contents: Contents::Fields(fields.collect()),
        }
    }

    /// The size at `path`, which starts after the variable.
    pub(super) fn size_at<'s>(
        &self,
        mut path: impl Iterator<Item = &'s Step>,
    ) -> Option<u64> {
        let mut at = self;
        while let Some(step) = path.next() {
            at = match (step, &at.contents) {
                (Step::Items | Step::Values, Contents::Items(item)) => item,
                (Step::Items | Step::Values, Contents::Values(entries)) => &entries.value,
                (Step::Name(_), Contents::Values(entries)) if entries.are_fields => {
                    &entries.value
                }
                // A key has no contents.
                (Step::Keys, Contents::Values(entries)) => {
                    return path.next().is_none().then_some(entries.key);
                }
                (Step::Name(name), Contents::Fields(fields)) => fields.get(&**name)?,
                _ => return None,
            };
        }
        Some(at.max_size)
    }
}
