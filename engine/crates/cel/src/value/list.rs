//! Lists: borrowed JSON or computed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::equality::equals_by_left_type as item_is;
use super::raw::{self, Identity};
use super::{Value, json};
use crate::{ListKind, ListType, RunError};

/// A list.
#[derive(Clone, Debug)]
pub enum List<'v> {
    /// A JSON array, whose items are read on demand.
    Json(&'v Vec<Json>, &'v ListType),
    /// A computed list.
    Owned(Arc<Vec<Value<'v>>>),
    /// A list of a custom resource after `+`. It still compares as the original list, and its
    /// items are read with the type on demand. With items of no declared type it is a
    /// concatenation of two lists.
    Merged(Arc<Vec<Value<'v>>>, &'v ListType),
}

impl<'v> List<'v> {
    /// The number of items.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(items, _) => items.len(),
            Self::Owned(items) | Self::Merged(items, _) => items.len(),
        }
    }

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`, `None` beyond the end.
    ///
    /// # Errors
    /// If the item is not of the declared type.
    pub fn get(&self, index: usize) -> Option<Result<Value<'v>, RunError>> {
        match self {
            Self::Json(items, ty) => {
                items.get(index).map(|item| json::read(item, &ty.item))
            }
            Self::Owned(items) => {
                items.get(index).cloned().map(Value::or_conversion_error)
            }
            Self::Merged(items, ty) => {
                items.get(index).map(|item| raw::read(item, &ty.item))
            }
        }
    }

    /// An item as the list stores it.
    fn stored_item(&self, index: usize) -> Option<Value<'v>> {
        match self {
            Self::Json(items, _) => items.get(index).map(raw::of_json),
            Self::Owned(items) | Self::Merged(items, _) => items.get(index).cloned(),
        }
    }

    /// All items as the list stores them.
    pub(super) fn stored_items(&self) -> impl Iterator<Item = Value<'v>> + '_ {
        (0..self.len()).filter_map(|index| self.stored_item(index))
    }

    /// The item at `index`; an item that cannot be read is stored as an error.
    pub(crate) fn readable_item(&self, index: usize) -> Option<Value<'v>> {
        self.get(index).map(|item| match item {
            Ok(item) => item,
            Err(error) => raw::unreadable(&error),
        })
    }

    /// All items, as [`List::readable_item`] returns them.
    pub(crate) fn readable_items(&self) -> Vec<Value<'v>> {
        match self {
            Self::Owned(items) => items.to_vec(),
            Self::Json(..) | Self::Merged(..) => (0..self.len())
                .filter_map(|at| self.readable_item(at))
                .collect(),
        }
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'v>, RunError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// `+`. If one list is empty, the result is the other one; a list of a custom resource is
    /// merged by its list type.
    ///
    /// # Errors
    /// If an item has no identity, which is an error in the API server.
    pub(crate) fn joined(&self, other: &Self) -> Result<Self, RunError> {
        if !self.is_unstructured() {
            if self.is_empty() {
                return Ok(other.clone());
            }
            if other.is_empty() {
                return Ok(self.clone());
            }
            let mut items = self.readable_items();
            items.extend(other.readable_items());
            return Ok(Self::Merged(Arc::new(items), &json::DYN_LIST));
        }
        let (Self::Json(_, ty) | Self::Merged(_, ty)) = *self else {
            return Ok(self.clone());
        };
        let items = match &ty.kind {
            ListKind::Atomic => {
                let added = other.iter().map(|item| raw::to_stored(item, &ty.item));
                self.stored_items().chain(added).collect()
            }
            ListKind::Set => self.set_union(other, ty)?,
            ListKind::Map(keys) => self.merged_by_keys(other, ty, keys)?,
        };
        Ok(Self::Merged(Arc::new(items), ty))
    }

    /// The items of a set after another list is added.
    fn set_union(
        &self,
        other: &Self,
        ty: &'v ListType,
    ) -> Result<Vec<Value<'v>>, RunError> {
        let mut items: Vec<_> = self.stored_items().collect();
        let mut known = HashSet::new();
        for item in &items {
            known.extend(Identity::of(item)?);
        }
        for item in other.iter() {
            let identity = match &item {
                Ok(item) => Identity::of_item(item.clone())?,
                Err(_) => None,
            };
            if identity.is_none_or(|it| known.insert(it)) {
                items.push(raw::to_stored(item, &ty.item));
            }
        }
        Ok(items)
    }

    /// The items of a keyed list after another list is merged.
    fn merged_by_keys(
        &self,
        other: &Self,
        ty: &'v ListType,
        keys: &[String],
    ) -> Result<Vec<Value<'v>>, RunError> {
        let mut items: Vec<_> = self.stored_items().collect();
        let mut indexes = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            if let Some(keys) = Identity::by_keys(item, keys)? {
                indexes.insert(keys, at);
            }
        }
        for item in other.iter() {
            let item = raw::to_stored(item, &ty.item);
            let keys = Identity::by_keys(&item, keys)?;
            let known = keys.and_then(|keys| indexes.get(&keys));
            match known.and_then(|at| items.get_mut(*at)) {
                Some(known) => *known = item,
                None => items.push(item),
            }
        }
        Ok(items)
    }

    /// Whether an item equals `wanted`, also if other items cannot be compared.
    ///
    /// # Errors
    /// If no item does and an item of a custom resource cannot be read or compared.
    pub(crate) fn contains(&self, wanted: &Value<'_>) -> Result<bool, RunError> {
        let items_decide = self.is_unstructured();
        let mut unknown = None;
        for item in self.iter() {
            let is_match = match item {
                Ok(item) if items_decide => item_is(&item, wanted),
                Ok(item) => Ok(item_is(wanted, &item).unwrap_or(false)),
                Err(_) if matches!(self, Self::Owned(_)) => Ok(false),
                Err(error) => Err(Box::new(error)),
            };
            match is_match {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => unknown = unknown.or(Some(*error)),
            }
        }
        unknown.map_or(Ok(false), Err)
    }

    /// Whether the API server stores it with a custom resource's schema; comparison and `+`
    /// then differ from those of cel-go's lists.
    pub(crate) fn is_unstructured(&self) -> bool {
        match self {
            Self::Json(_, ty) | Self::Merged(_, ty) => !ty.item.is_dynamic(),
            Self::Owned(_) => false,
        }
    }

    /// The `x-kubernetes-list-type` of the list.
    pub(crate) fn kind(&self) -> &'v ListKind {
        match self {
            Self::Json(_, ty) | Self::Merged(_, ty) => &ty.kind,
            Self::Owned(_) => &ListKind::Atomic,
        }
    }
}
