//! Providers of Cluster API, each with the resources that a ScheduledMachine creates.

/// A resource of an API group, by its plural name.
pub type Resource = (&'static str, &'static str);

/// A provider with a name, and the resources that one of its machines consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The name, as in `--provider`.
    pub name: &'static str,
    /// Group and plural name of each kind of bootstrap or infrastructure object.
    pub resources: &'static [Resource],
}

const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// The providers with a name, sorted by name.
///
/// For other providers, a ClusterRole with the label
/// [`AGGREGATE_LABEL`](fivespot_api::name::AGGREGATE_LABEL) has the same effect.
pub const PROVIDERS: &[Provider] = &[
    provider("aws", &[(INFRASTRUCTURE, "awsmachines")]),
    provider("azure", &[(INFRASTRUCTURE, "azuremachines")]),
    provider(
        "docker",
        &[
            (INFRASTRUCTURE, "devmachines"),
            (INFRASTRUCTURE, "dockermachines"),
        ],
    ),
    provider("gcp", &[(INFRASTRUCTURE, "gcpmachines")]),
    provider(
        "k0smotron",
        &[
            (BOOTSTRAP, "k0sworkerconfigs"),
            (INFRASTRUCTURE, "remotemachines"),
        ],
    ),
    provider("kubeadm", &[(BOOTSTRAP, "kubeadmconfigs")]),
    provider("metal3", &[(INFRASTRUCTURE, "metal3machines")]),
    provider("openstack", &[(INFRASTRUCTURE, "openstackmachines")]),
    provider("rke2", &[(BOOTSTRAP, "rke2configs")]),
    provider("talos", &[(BOOTSTRAP, "talosconfigs")]),
    provider("vsphere", &[(INFRASTRUCTURE, "vspheremachines")]),
];

const fn provider(name: &'static str, resources: &'static [Resource]) -> Provider {
    Provider { name, resources }
}

/// The provider of that name. `None` if there is none.
///
/// # Example
/// ```
/// use fivespot_install::provider;
/// let metal3 = provider::named("metal3").unwrap();
/// assert_eq!(metal3.resources, [("infrastructure.cluster.x-k8s.io", "metal3machines")]);
/// assert!(provider::named("Metal3").is_none());
/// ```
pub fn named(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

#[cfg(test)]
mod tests {
    use fivespot_api::name::{BOOTSTRAP_GROUPS, INFRASTRUCTURE_GROUPS};

    use super::PROVIDERS;

    #[test]
    fn every_resource_is_in_an_allowed_provider_group() {
        for provider in PROVIDERS {
            for (group, plural) in provider.resources {
                assert!(
                    BOOTSTRAP_GROUPS.contains(group)
                        || INFRASTRUCTURE_GROUPS.contains(group),
                    "{plural}.{group} of {}",
                    provider.name
                );
            }
        }
    }

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(PROVIDERS.is_sorted_by(|one, next| one.name < next.name));
    }
}
