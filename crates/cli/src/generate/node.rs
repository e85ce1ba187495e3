//! What the manifests require of the nodes.

use fivespot_install::pod::{APPARMOR_SINCE, NodeFeatures, USER_NAMESPACES_SINCE};

use crate::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct NodeArgs {
    /// Require the AppArmor profile of the container runtime (from --kube-version 1.30 on). A
    /// kubelet refuses such pods if AppArmor is not enabled on its node; without the flag, the
    /// profile is applied where AppArmor is enabled
    #[arg(long)]
    apparmor: bool,

    /// Run the pods in user namespaces (from --kube-version 1.33 on). They do not start on nodes
    /// without Linux 6.3 and containerd 2.0 or CRI-O 1.25
    #[arg(long)]
    user_namespaces: bool,
}

impl NodeArgs {
    /// What was required, for Kubernetes 1.`kube_minor` and later.
    ///
    /// # Errors
    /// That version does not have it.
    pub(super) fn features(&self, kube_minor: u32) -> Result<NodeFeatures, Failure> {
        for (flag, is_given, since) in [
            ("--apparmor", self.apparmor, APPARMOR_SINCE),
            (
                "--user-namespaces",
                self.user_namespaces,
                USER_NAMESPACES_SINCE,
            ),
        ] {
            if is_given && kube_minor < since {
                let why =
                    format!("Kubernetes 1.{kube_minor} does not have it by default");
                return Err(Failure::new(flag, why).remedy(format!(
                    "give --kube-version 1.{since} or later if every cluster has it"
                )));
            }
        }
        Ok(NodeFeatures {
            app_armor: self.apparmor,
            user_namespaces: self.user_namespaces,
        })
    }
}
