//! The object that an argument names: `NAME`, or `KIND/NAME` as kubectl accepts it.

use fivespot_api::resource::{
    CAPITAL_MARKETS_SCHEDULE, SCHEDULED_CAPACITY, SCHEDULED_MACHINE,
    SCHEDULED_MACHINE_SET, TIME_BASED_SPOT_SCHEDULE,
};
use fivespot_api::{Resource, name};

use kube::core::{ApiResource, GroupVersionKind};

use crate::Failure;

/// The kinds of what follows a schedule.
pub(crate) const FOLLOWERS: &[&Resource] = &[SCHEDULED_MACHINE, SCHEDULED_CAPACITY];

/// The same, and sets of machines.
pub(crate) const SHOWN: &[&Resource] =
    &[SCHEDULED_MACHINE, SCHEDULED_CAPACITY, SCHEDULED_MACHINE_SET];

/// The same, and the kinds of the schedules that they share.
pub(crate) const EXPLAINED: &[&Resource] = &[
    SCHEDULED_MACHINE,
    SCHEDULED_CAPACITY,
    SCHEDULED_MACHINE_SET,
    TIME_BASED_SPOT_SCHEDULE,
    CAPITAL_MARKETS_SCHEDULE,
];

/// An object by its kind and name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) resource: &'static Resource,
    pub(crate) name: &'a str,
}

impl<'a> Named<'a> {
    /// The object of one of these kinds that `text` names. Without a kind it is a ScheduledMachine.
    ///
    /// # Errors
    /// The kind is another one. The failure lists the short names.
    pub(crate) fn of(
        text: &'a str,
        kinds: &[&'static Resource],
    ) -> Result<Self, Failure> {
        let Some((kind, name)) = text.split_once('/') else {
            return Ok(Self::machine(text));
        };
        kind_of(kind, kinds)
            .map(|resource| Self { resource, name })
            .ok_or_else(|| {
                let known = kinds.iter().map(|it| format!("{}/NAME", it.short_name));
                let known: Vec<_> = known.collect();
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

    /// Whether it is a schedule that objects share.
    pub(crate) fn is_schedule(self) -> bool {
        self.resource.group == name::SPOT_GROUP
    }

    /// Whether it is a ScheduledMachineSet.
    pub(crate) fn is_set(self) -> bool {
        self.resource.kind == name::SET_KIND
    }

    /// The label selector of its machines, if it is a set.
    pub(crate) fn machine_selector(self) -> Option<String> {
        let selector = || format!("{}={}", name::SET_LABEL, self.name);
        self.is_set().then(selector)
    }

    /// Whether it is a ScheduledCapacity.
    pub(crate) fn is_capacity(self) -> bool {
        self.resource.kind == name::CAPACITY_KIND
    }
}

/// The one of these kinds that has that word as its plural, singular or short name, also with version
/// and group; or `capacity`.
pub(crate) fn kind_of(
    word: &str,
    kinds: &[&'static Resource],
) -> Option<&'static Resource> {
    let word = word.to_lowercase();
    let (word, group) = word.split_once('.').unwrap_or((&word, ""));
    kinds.iter().copied().find(|it| {
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
            let named = Named::of(&text, FOLLOWERS).unwrap();
            assert!(named.is_capacity() && named.name == "web", "{kind}");
        }
        for text in ["web", "sm/web", "scheduledmachines.5spot.finos.org/web"] {
            let named = Named::of(text, FOLLOWERS).unwrap();
            assert!(!named.is_capacity() && named.name == "web", "{text}");
        }
        for text in ["pod/web", "scap.example.com/web", "/web", "tbss/web"] {
            let failure = Named::of(text, FOLLOWERS).unwrap_err().to_string();
            assert!(failure.contains("sm/NAME or scap/NAME"), "{failure}");
        }
        for text in ["smset/desks", "scheduledmachinesets/desks"] {
            let named = Named::of(text, EXPLAINED).unwrap();
            assert!(named.is_set() && named.name == "desks", "{text}");
            assert!(Named::of(text, FOLLOWERS).is_err(), "{text}");
        }
        for text in [
            "tbss/office",
            "cms/office",
            "timebasedspotschedule/office",
            "capitalmarketsschedules.v1alpha1.spotschedules.5spot.finos.org/office",
        ] {
            let named = Named::of(text, EXPLAINED).unwrap();
            assert!(named.is_schedule() && named.name == "office", "{text}");
        }
    }
}
