//! Sets of paths, stored as trees.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

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
    /// The set of these field paths.
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

    /// Adds the path of one element.
    pub(super) fn insert(&mut self, element: Element) {
        self.members.insert(element);
    }

    /// Adds all paths of `below` under `element`.
    pub(super) fn insert_below(&mut self, element: Element, below: Self) {
        if below.is_empty() {
            return;
        }
        match self.children.entry(element) {
            Entry::Vacant(place) => {
                place.insert(below);
            }
            Entry::Occupied(mut place) => place.get_mut().extend(below),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Whether the path of one element is in the set.
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

    /// The set of the paths under `element`.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        self.children.get(element)
    }

    pub(super) fn members(&self) -> &BTreeSet<Element> {
        &self.members
    }

    pub(super) fn children(&self) -> &BTreeMap<Element, Self> {
        &self.children
    }

    /// All paths; the members of a level before the paths below them.
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

    /// Adds every path of `other`.
    pub(super) fn extend(&mut self, mut other: Self) {
        self.members.append(&mut other.members);
        for (element, child) in other.children {
            self.insert_below(element, child);
        }
    }

    /// The union of both sets.
    pub(super) fn union(mut self, other: Self) -> Self {
        self.extend(other);
        self
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

    /// Removes the paths of `other`; paths below them stay.
    pub(super) fn remove(&mut self, other: &Self) {
        for element in &other.members {
            self.members.remove(element);
        }
        for (element, gone) in &other.children {
            self.change_below(element, |child| child.remove(gone));
        }
    }

    /// Removes the paths of `other` and all paths below them.
    pub(super) fn remove_recursively(&mut self, other: &Self) {
        for element in &other.members {
            self.members.remove(element);
            self.children.remove(element);
        }
        for (element, gone) in &other.children {
            self.change_below(element, |child| child.remove_recursively(gone));
        }
    }

    /// Changes the set under `element`, if there is one.
    fn change_below(&mut self, element: &Element, change: impl FnOnce(&mut Self)) {
        if let Some(child) = self.children.get_mut(element) {
            change(child);
            if child.is_empty() {
                self.children.remove(element);
            }
        }
    }

    /// The paths that are not in `other`; paths below a path of `other` stay.
    pub(super) fn difference(mut self, other: &Self) -> Self {
        self.remove(other);
        self
    }

    /// The set with, in addition, every field of the schema that has paths below it.
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
