//! Lists: borrowed JSON or computed.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Value, json};
use crate::{ListKind, ListType, RunError};

/// A list.
#[derive(Clone, Debug)]
pub enum List<'v> {
    /// A JSON array, read item by item as the expression asks for them.
    Json(&'v Vec<Json>, &'v ListType),
    /// A computed list.
    Owned(Arc<Vec<Value<'v>>>),
    /// A computed list that still compares as the one it was made from.
    Merged(Arc<Vec<Value<'v>>>, &'v ListType),
}

impl<'v> List<'v> {
    /// How many items there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(items, _) => items.len(),
            Self::Owned(items) | Self::Merged(items, _) => items.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`, `None` beyond the end.
    ///
    /// # Errors
    /// If the JSON there is not of the declared type.
    pub fn get(&self, index: usize) -> Option<Result<Value<'v>, RunError>> {
        match self {
            Self::Json(items, ty) => {
                items.get(index).map(|item| json::read(item, &ty.item))
            }
            Self::Owned(items) | Self::Merged(items, _) => {
                items.get(index).cloned().map(Ok)
            }
        }
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'v>, RunError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// All items, or the first that is not of its type.
    ///
    /// # Errors
    /// If any item's JSON is not of the declared type.
    pub fn to_vec(&self) -> Result<Vec<Value<'v>>, RunError> {
        match self {
            Self::Json(..) => self.iter().collect(),
            Self::Owned(items) | Self::Merged(items, _) => Ok(items.to_vec()),
        }
    }

    /// Whether an item equals `wanted`, whatever stands around it.
    ///
    /// # Errors
    /// If none does and any item's JSON is not of the declared type.
    pub(crate) fn contains(&self, wanted: &Value<'_>) -> Result<bool, RunError> {
        let mut unread = None;
        for item in self.iter() {
            match item {
                Ok(item) if *wanted == item => return Ok(true),
                Ok(_) => {}
                Err(error) => unread = unread.or(Some(error)),
            }
        }
        unread.map_or(Ok(false), Err)
    }

    /// How two such lists compare.
    pub(crate) fn kind(&self) -> &'v ListKind {
        match self {
            Self::Json(_, ty) | Self::Merged(_, ty) => &ty.kind,
            Self::Owned(_) => &ListKind::Atomic,
        }
    }
}
