//! The chain of enabled plugins.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::{Attributes, Notes, Plugin, WITHDRAWN, builtin_plugins};
use crate::kind::BuiltinKind;
use crate::start::StartError;
use crate::state::State;
use crate::status::Status;

/// The available plugins, and which of them are enabled.
#[derive(Debug)]
pub(crate) struct PluginSelection<'a> {
    /// The Kubernetes release, which determines the defaults.
    pub(crate) kube: KubeVersion,
    /// The plugins besides the built-in ones.
    pub(crate) additional: &'a [Arc<dyn Plugin>],
    pub(crate) enable: &'a [String],
    pub(crate) disable: &'a [String],
    /// Whether plugins that Kubernetes has removed can be enabled.
    pub(crate) removed: bool,
    /// Configurations by plugin.
    pub(crate) configurations: &'a BTreeMap<String, Value>,
}

impl PluginSelection<'_> {
    fn is_on(&self, plugin: &dyn Plugin) -> bool {
        let is_in = |names: &[String]| names.iter().any(|it| it == plugin.name());
        is_in(self.enable)
            || plugin.removal().is_none()
                && plugin.is_on_by_default(self.kube)
                && !is_in(self.disable)
    }
}

/// The enabled plugins, in order.
#[derive(Clone, Debug)]
pub(crate) struct Chain(Arc<[Arc<dyn Plugin>]>);

impl Chain {
    /// The chain of the default plugins and those in `enable`, without those in `disable`.
    ///
    /// # Errors
    /// A name that no plugin or more than one plugin has, a removed plugin, a plugin that is both
    /// enabled and disabled, or a configuration that its plugin rejects.
    pub(crate) fn new(selection: &PluginSelection<'_>) -> Result<Self, StartError> {
        let mut known = builtin_plugins();
        for plugin in selection.additional {
            if known.iter().any(|it| it.name() == plugin.name()) {
                return Err(StartError::DuplicatePlugin(plugin.name().to_owned()));
            }
            known.push(plugin.clone());
        }
        check_names(selection, &known)?;
        for plugin in &mut known {
            let name = plugin.name().to_owned();
            let configuration = selection.configurations.get(&name);
            if let Some(configuration) = configuration.filter(|it| !it.is_null()) {
                *plugin = plugin.configured(configuration).map_err(|why| {
                    StartError::PluginConfiguration { plugin: name, why }
                })?;
            } else if plugin.needs_configuration() && selection.enable.contains(&name) {
                let why = "required, because the plugin has no effect without it";
                let why = why.to_owned();
                return Err(StartError::PluginConfiguration { plugin: name, why });
            }
        }
        known.retain(|it| selection.is_on(&**it));
        Ok(Self(known.into()))
    }

    /// The kinds that are served because their plugins are enabled.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Arc<dyn BuiltinKind>> {
        self.0.iter().flat_map(|it| it.kinds())
    }

    /// Calls `admit` of the plugins; `object` is the written object, if any. Returns the warnings
    /// and audit annotations. All plugins are called once more if a webhook has changed an object
    /// that others had already admitted (`reinvocation.go`).
    ///
    /// # Errors
    /// The first rejection.
    pub(crate) fn admit(
        &self,
        state: &mut State,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
    ) -> Result<Notes, Status> {
        let mut is_required = true;
        while is_required {
            for plugin in &*self.0 {
                plugin
                    .admit(state, attributes, object.as_deref_mut())
                    .map_err(|refused| with_warnings(refused, attributes))?;
            }
            // At most one reinvocation, whatever its result.
            let mut reinvocation = attributes.reinvocation();
            is_required = reinvocation.is_required && !reinvocation.is_second;
            reinvocation.is_second = true;
        }
        Ok(attributes.take_notes())
    }

    /// Calls `validate` of the plugins. Returns the warnings and audit annotations.
    ///
    /// # Errors
    /// The first rejection.
    pub(crate) fn validate(
        &self,
        state: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Notes, Status> {
        for plugin in &*self.0 {
            plugin
                .validate(state, attributes, object)
                .map_err(|refused| with_warnings(refused, attributes))?;
        }
        Ok(attributes.take_notes())
    }
}

/// Validates the names in the plugin options.
///
/// # Errors
/// A name that no plugin has, a removed plugin, a plugin that is both enabled and disabled, or a
/// configuration of a plugin that is not enabled.
fn check_names(
    selection: &PluginSelection<'_>,
    known: &[Arc<dyn Plugin>],
) -> Result<(), StartError> {
    let (enable, disable) = (selection.enable, selection.disable);
    if let Some(name) = enable.iter().find(|it| disable.contains(it)) {
        return Err(StartError::ContradictoryPlugin(name.clone()));
    }
    let configured = selection.configurations.keys();
    for name in enable.iter().chain(disable).chain(configured) {
        if let Some((_, removal)) = WITHDRAWN.iter().find(|it| it.0 == name) {
            return Err(StartError::withdrawn_plugin(name, *removal));
        }
        let Some(plugin) = known.iter().find(|it| it.name() == name) else {
            return Err(StartError::unknown_plugin(name, known));
        };
        if let Some(removal) = plugin.removal().filter(|_| !selection.removed) {
            return Err(StartError::removed_plugin(name, removal));
        }
        if selection.configurations.contains_key(name) && !selection.is_on(&**plugin) {
            return Err(StartError::UnusedConfiguration(name.clone()));
        }
    }
    Ok(())
}

/// Adds the warnings of the request to a rejection.
fn with_warnings(mut refused: Status, attributes: &Attributes<'_>) -> Status {
    refused.warnings.extend(attributes.take_notes().warnings);
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `AllOrderedPlugins` of k8s.io/kubernetes v1.36, with the removed plugins of v1.13.
    const ORDER: [&str; 47] = [
        "AlwaysAdmit",
        "NamespaceAutoProvision",
        "NamespaceLifecycle",
        "NamespaceExists",
        "SecurityContextDeny",
        "LimitPodHardAntiAffinityTopology",
        "PodPreset",
        "LimitRanger",
        "ServiceAccount",
        "NodeRestriction",
        "TaintNodesByCondition",
        "AlwaysPullImages",
        "ImagePolicyWebhook",
        "PodSecurityPolicy",
        "PodSecurity",
        "PodNodeSelector",
        "Priority",
        "DefaultTolerationSeconds",
        "PodTolerationRestriction",
        "DenyEscalatingExec",
        "DenyExecOnPrivileged",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "PersistentVolumeLabel",
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
    fn plugins_are_called_in_the_order_of_kubernetes() {
        let all = builtin_plugins();
        let found: Vec<_> = all.iter().map(|it| it.name()).collect();
        let expected: Vec<_> =
            ORDER.into_iter().filter(|it| found.contains(it)).collect();
        assert_eq!(found, expected);
    }
}
