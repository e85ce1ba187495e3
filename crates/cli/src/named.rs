//! The object that an argument names: `NAME`, or `KIND/NAME` as kubectl accepts it.

use fivespot_api::resource::{SCHEDULED_CAPACITY, SCHEDULED_MACHINE};
use fivespot_api::{Resource, name};

use kube::core::{ApiResource, GroupVersionKind};

use crate::Failure;

/// The kinds that `status` and `explain` know.
const KINDS: [&Resource; 2] = [SCHEDULED_MACHINE, SCHEDULED_CAPACITY];

/// An object by its kind and name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) resource: &'static Resource,
    pub(crate) name: &'a str,
}

impl<'a> Named<'a> {
    /// The object that `text` names. Without a kind it is a ScheduledMachine.
    ///
    /// # Errors
    /// The kind is another one. The failure lists the short names.
    pub(crate) fn of(text: &'a str) -> Result<Self, Failure> {
        let Some((kind, name)) = text.split_once('/') else {
            return Ok(Self::machine(text));
        };
        kind_of(kind)
            .map(|resource| Self { resource, name })
            .ok_or_else(|| {
                let known = KINDS.map(|it| format!("{}/NAME", it.short_name));
                Failure::new(text, format!("`{kind}` is not known"))
                    .remedy(format!("give a NAME, or {}", known.join(" or ")))
            })
    }

    /// The ScheduledMachine of that name.
    pub(crate) fn machine(name: &'a str) -> Self {
        Self {
            resource: SCHEDULED_MACHINE,
            name,
        }
    }

    /// Its kind as it is requested.
    pub(crate) fn served(self) -> ApiResource {
        let Resource {
            group,
            kind,
            plural,
            ..
        } = self.resource;
        let kind = GroupVersionKind::gvk(group, name::VERSION, kind);
        ApiResource::from_gvk_with_plural(&kind, plural)
    }

    /// Whether it is a ScheduledCapacity.
    pub(crate) fn is_capacity(self) -> bool {
        self.resource.kind == name::CAPACITY_KIND
    }
}

/// The kind of that word: its plural, singular, short name, and those with version and group; or
/// `capacity`.
pub(crate) fn kind_of(word: &str) -> Option<&'static Resource> {
    let word = word.to_lowercase();
    let (word, group) = word.split_once('.').unwrap_or((&word, ""));
    KINDS.into_iter().find(|it| {
        let is_word = [it.plural, it.singular, it.short_name].contains(&word)
            || word == "capacity" && it.kind == name::CAPACITY_KIND;
        let has_version = |version: &&str| format!("{version}.{}", it.group) == group;
        let is_group =
            group.is_empty() || group == it.group || it.versions.iter().any(has_version);
        is_word && is_group
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_as_kubectl_accepts_it() {
        for kind in [
            "scap",
            "capacity",
            "scheduledcapacity",
            "scheduledcapacities",
            "ScheduledCapacity",
            "scheduledcapacities.5spot.finos.org",
            "scheduledcapacities.v1alpha1.5spot.finos.org",
        ] {
            let text = format!("{kind}/web");
            let named = Named::of(&text).unwrap();
            assert!(named.is_capacity() && named.name == "web", "{kind}");
        }
        for text in ["web", "sm/web", "scheduledmachines.5spot.finos.org/web"] {
            let named = Named::of(text).unwrap();
            assert!(!named.is_capacity() && named.name == "web", "{text}");
        }
        for text in ["pod/web", "scap.example.com/web", "/web"] {
            let failure = Named::of(text).unwrap_err().to_string();
            assert!(failure.contains("sm/NAME or scap/NAME"), "{failure}");
        }
    }
}
