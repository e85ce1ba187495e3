//! API groups that are also served under another name.

use std::borrow::Cow;

use serde_json::Value;

use crate::resource::{Resource, api_version};

/// Another name for an API group that CustomResourceDefinitions define, such as an older name
/// that clients still use.
///
/// Responses to requests under the other name use that name: discovery, OpenAPI, lists,
/// watches, tables and errors. Objects are stored once, and authorization checks the group
/// itself. Short names and categories are those of the group only, so that they stay
/// unambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAlias {
    /// The other name.
    pub group: String,
    /// The group that it is an alias of.
    pub of: String,
}

/// The same resource under the aliases of its group.
pub(crate) fn others<'a>(
    aliases: &'a [GroupAlias],
    resource: &'a Resource,
) -> impl Iterator<Item = Resource> + use<'a> {
    let own = aliases.iter().filter(|it| it.of == resource.group);
    own.map(|alias| Resource {
        group: alias.group.clone(),
        short_names: Vec::new(),
        categories: Vec::new(),
        ..resource.clone()
    })
}

/// The names that a group is served under; its own name is first.
pub(crate) fn names<'a>(aliases: &'a [GroupAlias], group: &'a str) -> Vec<&'a str> {
    let others = aliases.iter().filter(|it| it.of == group);
    std::iter::once(group)
        .chain(others.map(|it| it.group.as_str()))
        .collect()
}

/// A custom object with the apiVersion of the group of its CustomResourceDefinition.
pub(crate) fn in_own_group<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.group == resource.storage.group {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    object["apiVersion"] = api_version(&resource.storage.group, &resource.version).into();
    Cow::Owned(object)
}
