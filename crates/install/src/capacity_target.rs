//! The kinds whose objects ScheduledCapacities may change.

use std::str::FromStr;

use fivespot_api::name;
use thiserror::Error;

/// A kind of targets, and how its objects are written.
///
/// # Example
/// ```
/// use fivespot_install::capacity_target::CapacityTarget;
/// let scaled: CapacityTarget = "deployments.apps/scale".parse()?;
/// assert_eq!((scaled.group.as_str(), scaled.plural.as_str()), ("apps", "deployments"));
/// let of_core: CapacityTarget = "resourcequotas".parse()?;
/// assert_eq!(of_core.group, "");
/// # Ok::<(), fivespot_install::capacity_target::InvalidTarget>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapacityTarget {
    /// The API group; empty for the core.
    pub group: String,
    /// The plural of the kind, as in URLs.
    pub plural: String,
    /// How its objects are written.
    pub access: Access,
}

/// How the objects of a kind are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// By patches of the objects.
    Patch,
    /// By patches of the subresource `scale` alone.
    Scale,
    /// They are created from a template, and patched.
    Template,
}

/// A text is not a kind of targets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a kind of targets: write PLURAL.GROUP, PLURAL.GROUP/scale or \
     PLURAL.GROUP/template, such as deployments.apps/scale; not one of 5-Spot itself, of roles or \
     of Secrets"
)]
pub struct InvalidTarget {
    text: String,
}

impl FromStr for CapacityTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let (kind, access) = match text.split_once('/') {
            None => (text, Some(Access::Patch)),
            Some((kind, "scale")) => (kind, Some(Access::Scale)),
            Some((kind, "template")) => (kind, Some(Access::Template)),
            Some((kind, _)) => (kind, None),
        };
        let (plural, group) = kind.split_once('.').unwrap_or((kind, ""));
        let is_label = |it: &str| {
            let plain =
                |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            !it.is_empty() && it.chars().all(plain)
        };
        let is_kind =
            is_label(plural) && (group.is_empty() || group.split('.').all(is_label));
        // What would let a tenant give rights to itself.
        let is_ours = [name::GROUP, name::SPOT_GROUP, "rbac.authorization.k8s.io"];
        let is_refused = is_ours.contains(&group) || (group, plural) == ("", "secrets");
        match access {
            Some(access) if is_kind && !is_refused => Ok(Self {
                group: group.to_owned(),
                plural: plural.to_owned(),
                access,
            }),
            _ => Err(InvalidTarget {
                text: text.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kinds_of_others_are_targets() {
        for text in [
            "",
            "Deployments.apps",
            "deployments.apps/status",
            "deployments..apps",
            "secrets",
            "roles.rbac.authorization.k8s.io",
            "scheduledmachines.5spot.finos.org",
        ] {
            assert!(text.parse::<CapacityTarget>().is_err(), "{text}");
        }
        let nodes: CapacityTarget = "nodepools.karpenter.sh".parse().unwrap();
        assert_eq!(
            (nodes.group.as_str(), nodes.access),
            ("karpenter.sh", Access::Patch)
        );
    }
}
