//! The registry of served resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kind::builtin;
use crate::resource::Resource;

/// All served resources.
///
/// A registry is a value: registering a CustomResourceDefinition creates another registry, so
/// that a request that holds the older one completes with it.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// By group, version (best first), then plural. A changed registry shares the other groups.
    groups: BTreeMap<String, Arc<Group>>,
    /// The number of changes; part of the entity tags of discovery and OpenAPI.
    revision: u64,
}

/// The versions of one group, the preferred one first.
#[derive(Clone, Debug, Default)]
struct Group {
    versions: Vec<(String, BTreeMap<String, Arc<Resource>>)>,
}

impl Registry {
    /// A registry of `resources`. Of two with the same group, version and plural the later one
    /// is kept.
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> Self {
        let mut registry = Self::default();
        for resource in resources {
            registry.insert(resource);
        }
        registry
    }

    /// A registry of all built-in kinds.
    pub fn builtin() -> Self {
        Self::new(builtin::resources())
    }

    /// Adds `resource`, or replaces the one with the same group, version and plural.
    pub fn insert(&mut self, resource: Resource) {
        self.revision += 1;
        let group = self.groups.entry(resource.group.clone()).or_default();
        let group = Arc::make_mut(group);
        if !group
            .versions
            .iter()
            .any(|(version, _)| *version == resource.version)
        {
            group
                .versions
                .push((resource.version.clone(), BTreeMap::new()));
            group
                .versions
                .sort_by_key(|(version, _)| std::cmp::Reverse(rank(version)));
        }
        let found = group
            .versions
            .iter_mut()
            .find(|(it, _)| *it == resource.version);
        if let Some((_, plurals)) = found {
            plurals.insert(resource.plural.clone(), Arc::new(resource));
        }
    }

    /// Removes all versions of `plural` in `group`.
    pub fn remove(&mut self, group: &str, plural: &str) {
        self.revision += 1;
        if let Some(found) = self.groups.get_mut(group).map(Arc::make_mut) {
            for (_, plurals) in &mut found.versions {
                plurals.remove(plural);
            }
            found.versions.retain(|(_, plurals)| !plurals.is_empty());
            if found.versions.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    /// The resource at `/apis/<group>/<version>/<plural>` (`/api/<version>` for the
    /// empty group).
    pub fn find(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<Resource>> {
        self.plurals(group, version)?.get(plural)
    }

    /// The resource of a kind, if it is served.
    pub fn of_kind(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<&Arc<Resource>> {
        self.plurals(group, version)?
            .values()
            .find(|it| it.kind == kind)
    }

    /// The names of all groups in alphabetical order; the core group is the empty one.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// The versions of `group`, the preferred one first: stable before beta before
    /// alpha, higher before lower. Empty for an unknown group.
    pub fn versions<'a>(
        &'a self,
        group: &str,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let found = self.groups.get(group);
        found
            .into_iter()
            .flat_map(|it| it.versions.iter())
            .map(|(version, _)| version.as_str())
    }

    /// The resources of one group and version in alphabetical order of their plurals.
    pub fn resources<'a>(
        &'a self,
        group: &str,
        version: &str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> + use<'a> {
        self.plurals(group, version)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// All served resources, by group and version.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups
            .values()
            .flat_map(|it| &it.versions)
            .flat_map(|(_, all)| all.values())
    }

    /// Increases with every change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn plurals(
        &self,
        group: &str,
        version: &str,
    ) -> Option<&BTreeMap<String, Arc<Resource>>> {
        let group = self.groups.get(group)?;
        group
            .versions
            .iter()
            .find(|(it, _)| it == version)
            .map(|(_, plurals)| plurals)
    }
}

/// Kubernetes' order of versions (k8s.io/apimachinery/pkg/version): a higher rank is
/// preferred. `v2` > `v1` > `v2beta1` > `v1alpha1` > anything else, which is compared
/// alphabetically, earlier first.
pub(crate) fn rank(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return other();
    };
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (major, tail) = rest.split_at(digits);
    let Ok(major) = major.parse::<u64>() else {
        return other();
    };
    let (stage, minor) = if tail.is_empty() {
        (3, "0")
    } else if let Some(minor) = tail.strip_prefix("beta") {
        (2, minor)
    } else if let Some(minor) = tail.strip_prefix("alpha") {
        (1, minor)
    } else {
        return other();
    };
    match minor.parse::<u64>() {
        Ok(minor) => (stage, major, minor, std::cmp::Reverse(String::new())),
        Err(_) => other(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_listed_stable_first_and_newest_first() {
        let mut registry = Registry::default();
        for version in ["v1alpha1", "foo", "v2beta2", "v1", "v10", "v2beta10", "bar"] {
            registry.insert(Resource::new("g", version, "Kind", "kinds"));
        }
        let order: Vec<_> = registry.versions("g").collect();
        assert_eq!(
            order,
            ["v10", "v1", "v2beta10", "v2beta2", "v1alpha1", "bar", "foo"]
        );
    }

    #[test]
    fn removing_a_resource_removes_its_empty_versions_and_group() {
        let mut registry = Registry::new([Resource::new("g", "v1", "Kind", "kinds")]);
        registry.remove("g", "kinds");
        assert_eq!(registry.groups().count(), 0);
        assert!(registry.find("g", "v1", "kinds").is_none());
    }
}
