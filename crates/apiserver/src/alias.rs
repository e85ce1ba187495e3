//! Groups that are served under another name too.

use std::borrow::Cow;

use serde_json::Value;

use crate::authorization::Action;
use crate::resource::{Resource, api_version};

/// Another name for a group whose resources come from definitions: an older one, say, that
/// clients still use.
///
/// What is asked for under the other name is answered under it: discovery, schemas, lists,
/// watches, tables and refusals. Objects are kept once, roles are asked about the group
/// itself, and short names and categories are the group's alone, so that they stay clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAlias {
    /// The other name.
    pub group: String,
    /// The group itself.
    pub of: String,
}

/// The same resource under the other names of its group.
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

/// The names that a group is served under, its own first.
pub(crate) fn names<'a>(aliases: &'a [GroupAlias], group: &'a str) -> Vec<&'a str> {
    let others = aliases.iter().filter(|it| it.of == group);
    std::iter::once(group)
        .chain(others.map(|it| it.group.as_str()))
        .collect()
}

/// An action as roles know it.
pub(crate) fn settled(aliases: &[GroupAlias], action: &Action) -> Action {
    let alias = aliases.iter().find(|it| it.group == action.group);
    let mut action = action.clone();
    if let Some(alias) = alias {
        action.group.clone_from(&alias.of);
    }
    action
}

/// An object of a resource from a definition as the definition knows it.
pub(crate) fn in_own_group<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.group == resource.storage.group {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    object["apiVersion"] = api_version(&resource.storage.group, &resource.version).into();
    Cow::Owned(object)
}
