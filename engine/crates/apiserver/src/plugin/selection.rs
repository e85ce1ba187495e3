//! Which plugins are enabled.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::builtin::{WITHDRAWN, builtin_plugins};
use super::chain::Chain;
use super::{Plugin, Removal};
use crate::start::StartError;

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
    /// The chain of the default plugins and those in `enable`, without those in `disable`.
    ///
    /// # Errors
    /// A name that no plugin or more than one plugin has, a removed plugin, a plugin that is both
    /// enabled and disabled, or a configuration that its plugin rejects.
    pub(crate) fn chain(&self) -> Result<Chain, StartError> {
        let mut known = builtin_plugins();
        for plugin in self.additional {
            if known.iter().any(|it| it.name() == plugin.name()) {
                return Err(StartError::DuplicatePlugin(plugin.name().to_owned()));
            }
            known.push(plugin.clone());
        }
        check_names(self, &known)?;
        for plugin in &mut known {
            let name = plugin.name().to_owned();
            let configuration = self.configurations.get(&name);
            if let Some(configuration) = configuration.filter(|it| !it.is_null()) {
                *plugin = plugin.configured(configuration).map_err(|why| {
                    StartError::PluginConfiguration { plugin: name, why }
                })?;
            } else if plugin.needs_configuration() && self.enable.contains(&name) {
                let why = "required, because the plugin has no effect without it";
                let why = why.to_owned();
                return Err(StartError::PluginConfiguration { plugin: name, why });
            }
        }
        known.retain(|it| self.is_on(&**it));
        Ok(Chain(known.into()))
    }

    fn is_on(&self, plugin: &dyn Plugin) -> bool {
        let is_in = |names: &[String]| names.iter().any(|it| it == plugin.name());
        is_in(self.enable)
            || plugin.removal().is_none()
                && plugin.is_on_by_default(self.kube)
                && !is_in(self.disable)
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
            return Err(withdrawn_plugin(name, *removal));
        }
        let Some(plugin) = known.iter().find(|it| it.name() == name) else {
            return Err(unknown_plugin(name, known));
        };
        if let Some(removal) = plugin.removal().filter(|_| !selection.removed) {
            return Err(removed_plugin(name, removal));
        }
        if selection.configurations.contains_key(name) && !selection.is_on(&**plugin) {
            return Err(StartError::UnusedConfiguration(name.clone()));
        }
    }
    Ok(())
}

fn unknown_plugin(name: &str, known: &[Arc<dyn Plugin>]) -> StartError {
    let known = known.iter().filter(|it| it.removal().is_none());
    let mut known: Vec<&str> = known.map(|it| it.name()).collect();
    known.sort_unstable();
    StartError::UnknownPlugin {
        name: name.to_owned(),
        known: known.join(", "),
    }
}

fn removed_plugin(name: &str, removal: Removal) -> StartError {
    StartError::RemovedPlugin {
        name: name.to_owned(),
        release: removal.release,
        instead: removal.instead,
    }
}

fn withdrawn_plugin(name: &str, removal: Removal) -> StartError {
    StartError::WithdrawnPlugin {
        name: name.to_owned(),
        release: removal.release,
        instead: removal.instead,
    }
}
