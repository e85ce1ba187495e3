//! Sets of paths, kept as trees.

use std::collections::{BTreeMap, BTreeSet};

use super::element::Element;
use crate::openapi::shape::Shape;

/// A set of paths into an object.
///
/// No child is empty, so that equal sets are equal trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    members: BTreeSet<Element>,
    children: BTreeMap<Element, FieldSet>,
}

impl FieldSet {
    /// The set of these paths of fields.
    pub(super) fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let elements: Vec<_> = path.iter().map(|it| Element::field(it)).collect();
            set.insert_path(&elements);
        }
        set
    }

    pub(super) fn insert_path(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => self.insert(last.clone()),
            [first, rest @ ..] => {
                self.children
                    .entry(first.clone())
                    .or_default()
                    .insert_path(rest);
            }
        }
    }

    /// Adds the place one step from the root of the set.
    pub(super) fn insert(&mut self, element: Element) {
        self.members.insert(element);
    }

    /// Adds all that `below` holds under `element`.
    pub(super) fn insert_below(&mut self, element: Element, below: Self) {
        if !below.is_empty() {
            let merged = match self.children.remove(&element) {
                Some(other) => other.union(&below),
                None => below,
            };
            self.children.insert(element, merged);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Whether the place one step from the root is in the set.
    pub(super) fn has(&self, element: &Element) -> bool {
        self.members.contains(element)
    }

    pub(super) fn has_path(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|it| it.has_path(rest)),
        }
    }

    /// What the set holds under `element`.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        self.children.get(element)
    }

    pub(super) fn members(&self) -> &BTreeSet<Element> {
        &self.members
    }

    pub(super) fn children(&self) -> &BTreeMap<Element, Self> {
        &self.children
    }

    /// Every path, the members of a place before what is below them.
    pub(super) fn paths(&self) -> Vec<Vec<Element>> {
        let mut all: Vec<_> = self.members.iter().map(|it| vec![it.clone()]).collect();
        for (element, child) in &self.children {
            for path in child.paths() {
                let mut whole = vec![element.clone()];
                whole.extend(path);
                all.push(whole);
            }
        }
        all
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.members.extend(other.members.iter().cloned());
        for (element, child) in &other.children {
            let merged = match all.children.get(element) {
                Some(found) => found.union(child),
                None => child.clone(),
            };
            all.children.insert(element.clone(), merged);
        }
        all
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(element, child)| {
            Some((
                element.clone(),
                child.intersection(other.children.get(element)?),
            ))
        });
        Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: children.filter(|it| !it.1.is_empty()).collect(),
        }
    }

    /// The paths that are not in `other`; what is below a path of `other` stays.
    pub(super) fn difference(&self, other: &Self) -> Self {
        let children = self.children.iter().map(|(element, child)| {
            let left = match other.children.get(element) {
                Some(gone) => child.difference(gone),
                None => child.clone(),
            };
            (element.clone(), left)
        });
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: children.filter(|it| !it.1.is_empty()).collect(),
        }
    }

    /// The paths that are neither in `other` nor below one of its paths.
    pub(super) fn without(&self, other: &Self) -> Self {
        let kept = self.children.iter().filter(|it| !other.has(it.0));
        let children = kept.map(|(element, child)| {
            let left = match other.children.get(element) {
                Some(gone) => child.without(gone),
                None => child.clone(),
            };
            (element.clone(), left)
        });
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: children.filter(|it| !it.1.is_empty()).collect(),
        }
    }

    /// The set with every field that the schema names and below which something is.
    pub(super) fn with_named_fields(&self, shape: Shape<'_>) -> Self {
        let mut all = Self {
            members: self.members.clone(),
            children: BTreeMap::new(),
        };
        for (element, child) in &self.children {
            let place = match element {
                Element::Field(name) => {
                    if shape.declares(name) {
                        all.members.insert(element.clone());
                    }
                    shape.field(name)
                }
                Element::Key(_) => shape.items(),
                Element::Value(_) | Element::Index(_) => Shape::UNKNOWN,
            };
            all.children
                .insert(element.clone(), child.with_named_fields(place));
        }
        all
    }
}
