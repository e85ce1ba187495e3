//! The plugins that are on, asked one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_admission::KubeVersion;
use serde_json::Value;

use super::{Attributes, Notes, Plugin, builtin_plugins};
use crate::start::StartError;
use crate::state::State;
use crate::status::Status;

/// Which plugins there are, and which of them are on.
#[derive(Debug)]
pub(crate) struct Switches<'a> {
    /// The release, which has its own defaults.
    pub(crate) kube: KubeVersion,
    /// Plugins beside the built-in ones.
    pub(crate) further: &'a [Arc<dyn Plugin>],
    pub(crate) enable: &'a [String],
    pub(crate) disable: &'a [String],
    /// Configurations by plugin.
    pub(crate) configurations: &'a BTreeMap<String, Value>,
}

/// The plugins that are on, in order.
#[derive(Clone, Debug)]
pub(crate) struct Chain(Arc<[Arc<dyn Plugin>]>);

impl Chain {
    /// The default plugins, more and fewer.
    ///
    /// # Errors
    /// For a name that no plugin has or two have, for one that is both enabled and disabled, and
    /// for a configuration that its plugin does not take.
    pub(crate) fn new(switches: &Switches<'_>) -> Result<Self, StartError> {
        let mut known = builtin_plugins();
        for plugin in switches.further {
            if known.iter().any(|it| it.name() == plugin.name()) {
                return Err(StartError::DuplicatePlugin(plugin.name().to_owned()));
            }
            known.push(plugin.clone());
        }
        let (enable, disable) = (switches.enable, switches.disable);
        if let Some(name) = enable.iter().find(|it| disable.contains(it)) {
            return Err(StartError::ContradictoryPlugin(name.clone()));
        }
        let configured = switches.configurations.keys();
        let mut named = enable.iter().chain(disable).chain(configured);
        if let Some(name) = named.find(|it| known.iter().all(|known| known.name() != *it))
        {
            return Err(StartError::unknown_plugin(name, &known));
        }
        for plugin in &mut known {
            if let Some(configuration) = switches.configurations.get(plugin.name()) {
                *plugin = plugin.configured(configuration).map_err(|why| {
                    let plugin = plugin.name().to_owned();
                    StartError::PluginConfiguration { plugin, why }
                })?;
            }
        }
        let is_in = |names: &[String], name: &str| names.iter().any(|it| it == name);
        known.retain(|it| {
            is_in(enable, it.name())
                || it.is_on_by_default(switches.kube) && !is_in(disable, it.name())
        });
        Ok(Self(known.into()))
    }

    /// Lets the plugins prepare a write: `object` is what is written, if that is an object. What
    /// they have to say beside is returned.
    ///
    /// # Errors
    /// The refusal of the first that refuses.
    pub(crate) fn admit(
        &self,
        state: &mut State,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
    ) -> Result<Notes, Status> {
        for plugin in &*self.0 {
            plugin
                .admit(state, attributes, object.as_deref_mut())
                .map_err(|refused| warned(refused, attributes))?;
        }
        Ok(attributes.take_notes())
    }

    /// Asks the plugins whether a request may pass. What they have to say beside is returned.
    ///
    /// # Errors
    /// The refusal of the first that refuses.
    pub(crate) fn validate(
        &self,
        state: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Notes, Status> {
        for plugin in &*self.0 {
            plugin
                .validate(state, attributes, object)
                .map_err(|refused| warned(refused, attributes))?;
        }
        Ok(attributes.take_notes())
    }
}

/// Who is refused is warned as well.
fn warned(mut refused: Status, attributes: &Attributes<'_>) -> Status {
    refused.warnings.extend(attributes.take_notes().warnings);
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `AllOrderedPlugins` of k8s.io/kubernetes v1.36.
    const ORDER: [&str; 41] = [
        "AlwaysAdmit",
        "NamespaceAutoProvision",
        "NamespaceLifecycle",
        "NamespaceExists",
        "LimitPodHardAntiAffinityTopology",
        "LimitRanger",
        "ServiceAccount",
        "NodeRestriction",
        "TaintNodesByCondition",
        "AlwaysPullImages",
        "ImagePolicyWebhook",
        "PodSecurity",
        "PodNodeSelector",
        "Priority",
        "DefaultTolerationSeconds",
        "PodTolerationRestriction",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "PodGroupProtection",
        "OwnerReferencesPermissionEnforcement",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "CertificateApproval",
        "CertificateSigning",
        "ClusterTrustBundleAttest",
        "CertificateSubjectRestriction",
        "DefaultIngressClass",
        "DenyServiceExternalIPs",
        "PodTopologyLabels",
        "PodGroupWorkloadExists",
        "NodeDeclaredFeatureValidator",
        "JobValidation",
        "PodResizeValidator",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
        "ResourceQuota",
        "AlwaysDeny",
    ];

    #[test]
    fn plugins_are_asked_in_the_order_of_kubernetes() {
        let all = builtin_plugins();
        let found: Vec<_> = all.iter().map(|it| it.name()).collect();
        let expected: Vec<_> =
            ORDER.into_iter().filter(|it| found.contains(it)).collect();
        assert_eq!(found, expected);
    }
}
