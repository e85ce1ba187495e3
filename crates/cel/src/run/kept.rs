//! Paths whose targets are cached, for all programs that follow them.

use serde_json::Value as Json;

use super::Run;
use super::maybe::Maybe;
use crate::places::{Number, Place, Places};
use crate::plan::{Attribute, Key, Node, Qualifier, Root};
use crate::value::{named, untyped};
use crate::{RunError, Type};

impl Attribute {
    /// The cost of its fields and indexes, without the name at the start.
    pub(super) fn steps(&self) -> u64 {
        self.qualifiers.len() as u64
    }
}

impl<'v> Run<'_, 'v> {
    /// The target of a path, if paths are cached.
    #[inline]
    pub(super) fn place(&self, node: &'v Node) -> Option<(Place<'v>, &'v Attribute)> {
        match node {
            Node::Attribute(attribute) => Some((self.led(attribute)?, attribute)),
            _ => None,
        }
    }

    #[inline]
    fn led(&self, attribute: &'v Attribute) -> Option<Place<'v>> {
        let (places, path) = (self.places?, attribute.path?);
        if attribute.test {
            return None;
        }
        match places.get(path) {
            Place::Unknown => Some(self.find(places, attribute, path)),
            place => Some(place),
        }
    }

    /// The cached target of a path, with its cost without the name at the start.
    #[inline]
    pub(super) fn kept(
        &mut self,
        attribute: &'v Attribute,
        name: u64,
    ) -> Option<Result<Maybe<'v>, RunError>> {
        let (found, steps) = self.kept_json(attribute)?;
        let found = match found {
            Some(json) if attribute.optional => Maybe::Present(untyped(json)),
            Some(json) => Maybe::Plain(untyped(json)),
            None => Maybe::Absent,
        };
        Some(self.budget.charge_steps(steps + name).map(|()| found))
    }

    /// The cached target of a path, `None` if absent, and the cost of following it without the
    /// name at the start; `None` if the target is not cached.
    #[inline]
    pub(super) fn kept_at(&self, node: &'v Node) -> Option<(Option<&'v Json>, u64)> {
        match node {
            Node::Attribute(attribute) => self.kept_json(attribute),
            _ => None,
        }
    }

    #[inline]
    fn kept_json(&self, attribute: &'v Attribute) -> Option<(Option<&'v Json>, u64)> {
        match self.led(attribute)? {
            Place::At(json) => Some((Some(json), attribute.steps())),
            Place::Absent(before) => Some((None, before)),
            Place::Unknown | Place::Elsewhere => None,
        }
    }

    /// Resolves a path, starting after its longest prefix in the cache.
    #[inline(never)]
    fn find(
        &self,
        places: &Places<'v>,
        attribute: &'v Attribute,
        path: Number,
    ) -> Place<'v> {
        let qualifiers = &*attribute.qualifiers;
        let mut place = Place::Unknown;
        let mut from = qualifiers.len();
        while let Some(before) = from.checked_sub(1)
            && let Some(qualifier) = qualifiers.get(before)
        {
            place = qualifier.path.map_or(place, |path| places.get(path));
            if !matches!(place, Place::Unknown) {
                break;
            }
            from = before;
        }
        if from == 0 {
            place = self.beginning(&attribute.root);
        }
        let (known, rest) = qualifiers.split_at_checked(from).unwrap_or_default();
        let mut optional = known.iter().any(|it| it.optional);
        for (at, qualifier) in rest.iter().enumerate() {
            optional |= qualifier.optional;
            place = step(place, (from + at, qualifier), optional);
            if let Some(path) = qualifier.path {
                places.set(path, place);
            }
        }
        places.set(path, place);
        place
    }

    /// The start of a path: a variable that is JSON without a declared type.
    fn beginning(&self, root: &Root) -> Place<'v> {
        let json = match root {
            Root::Variable(variable) => self.declared.get(*variable),
            _ => None,
        };
        let json = json.filter(|declared| matches!(declared.ty, Type::Dyn));
        match json.and_then(|declared| self.activation.json(&declared.name)) {
            Some(json) => Place::At(json),
            None => Place::Elsewhere,
        }
    }
}

/// Reads one field, after this number of fields.
fn step<'v>(
    place: Place<'v>,
    (before, qualifier): (usize, &Qualifier),
    optional: bool,
) -> Place<'v> {
    let (Place::At(Json::Object(fields)), Key::Name(name)) = (place, &qualifier.key)
    else {
        return match place {
            Place::Absent(_) => place,
            _ => Place::Elsewhere,
        };
    };
    match named(fields, name) {
        Some(json) => Place::At(json),
        None if optional => Place::Absent(before as u64),
        None => Place::Elsewhere,
    }
}
