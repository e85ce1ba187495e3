//! Paths of which is kept where they lead, for all programs that follow them.

use serde_json::Value as Json;

use super::Run;
use super::maybe::Maybe;
use crate::places::{Number, Place, Places};
use crate::plan::{Attribute, Key, Node, Qualifier, Root};
use crate::value::{named, untyped};
use crate::{RunError, Type};

impl Attribute {
    /// What its fields and indexes cost, but for the name they begin with.
    pub(super) fn steps(&self) -> u64 {
        self.qualifiers.len() as u64
    }
}

impl<'v> Run<'_, 'v> {
    /// Where a path leads, if that is kept.
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

    /// What a path leads to that is kept, with its costs but for the name it begins with.
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

    /// Where a path leads, or that it leads nowhere, and what following it costs but for the
    /// name it begins with; nothing if that is not kept.
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

    /// Follows a path from the last field on of which is known where it is.
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

    /// What a path begins with: a variable that is JSON of no declared type.
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

/// One field on, the one that has so many before it.
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
