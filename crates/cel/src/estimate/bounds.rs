//! How large values can get.

use std::collections::BTreeMap;

use super::path::Step;

/// How large a value and what is in it can get: the shape of a [`Type`](crate::Type) with a
/// size at each place.
#[derive(Clone, Debug)]
pub struct Bounds {
    most: u64,
    inside: Inside,
}

#[derive(Clone, Debug)]
enum Inside {
    Nothing,
    Items(Box<Bounds>),
    Values(Box<Bounds>),
    Fields(BTreeMap<String, Bounds>),
}

impl Bounds {
    /// A value with nothing in it: text of so many characters, bytes, or a number, whose
    /// size the API server takes for 0.
    pub const fn of_size(most: u64) -> Self {
        Self {
            most,
            inside: Inside::Nothing,
        }
    }

    /// A list of so many items.
    pub fn list(most: u64, item: Self) -> Self {
        Self {
            most,
            inside: Inside::Items(Box::new(item)),
        }
    }

    /// A map of so many entries. The API server takes the size of its keys for 0.
    pub fn map(most: u64, value: Self) -> Self {
        Self {
            most,
            inside: Inside::Values(Box::new(value)),
        }
    }

    /// An object with these fields, by their JSON names. Those whose names cannot be
    /// [escaped](crate::escape) are left out.
    pub fn object<N: AsRef<str>>(fields: impl IntoIterator<Item = (N, Self)>) -> Self {
        let fields = fields
            .into_iter()
            .filter_map(|(name, bounds)| Some((crate::escape(name.as_ref())?, bounds)));
        Self {
            most: 0,
            inside: Inside::Fields(fields.collect()),
        }
    }

    /// The size of what `path`, after its variable, leads to.
    pub(super) fn size_at<'s>(
        &self,
        mut path: impl Iterator<Item = &'s Step>,
    ) -> Option<u64> {
        let mut at = self;
        while let Some(step) = path.next() {
            at = match (step, &at.inside) {
                (
                    Step::Items | Step::Values,
                    Inside::Items(each) | Inside::Values(each),
                ) => each,
                // Nothing is below a key.
                (Step::Keys, Inside::Values(_)) => {
                    return path.next().is_none().then_some(0);
                }
                (Step::Name(name), Inside::Fields(fields)) => fields.get(&**name)?,
                _ => return None,
            };
        }
        Some(at.most)
    }
}
