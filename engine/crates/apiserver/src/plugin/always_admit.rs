//! AlwaysAdmit: admits every request.

use kubemu_admission::KubeVersion;

use super::Plugin;

/// The plugin.
#[derive(Debug)]
pub(super) struct AlwaysAdmit;

impl Plugin for AlwaysAdmit {
    fn name(&self) -> &'static str {
        "AlwaysAdmit"
    }

    fn description(&self) -> &'static str {
        "Admits every request, the same as without the plugin."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }
}
