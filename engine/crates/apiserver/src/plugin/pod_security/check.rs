//! The checks of the Pod Security Standards, and the releases to which they apply.

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::{Level, baseline, restricted};
use crate::plugin::pod::{self, text};

/// A violation of a check by a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: String,
    pub(super) detail: String,
}

impl Violation {
    pub(super) fn new(reason: &str, detail: String) -> Self {
        Self {
            reason: reason.to_owned(),
            detail,
        }
    }
}

/// A check function: returns the violation of a pod, for a minor release.
type Run = fn(&Value, u32) -> Option<Violation>;

/// A check.
struct Check {
    id: &'static str,
    /// The first minor release that has it.
    since: u32,
    run: Run,
    /// The baseline check that it replaces.
    instead_of: &'static str,
}

const fn check(id: &'static str, since: u32, run: Run) -> Check {
    Check {
        id,
        since,
        run,
        instead_of: "",
    }
}

const fn instead_of(other: &'static str, own: Check) -> Check {
    Check {
        instead_of: other,
        ..own
    }
}

/// Sorted by name, which is the order of messages.
const BASELINE: [Check; 12] = [
    check("appArmorProfile", 0, baseline::app_armor_profile),
    check("capabilities_baseline", 0, baseline::capabilities),
    check("hostNamespaces", 0, baseline::host_namespaces),
    check("hostPathVolumes", 0, baseline::host_path_volumes),
    check("hostPorts", 0, baseline::host_ports),
    check("hostProbesAndHostLifecycle", 34, baseline::host_probes),
    check("privileged", 0, baseline::privileged),
    check("procMount", 0, baseline::proc_mount),
    check("seLinuxOptions", 0, baseline::se_linux_options),
    check("seccompProfile_baseline", 0, baseline::seccomp_profile),
    check("sysctls", 0, baseline::sysctls),
    check("windowsHostProcess", 0, baseline::windows_host_process),
];

const RESTRICTED: [Check; 7] = [
    check(
        "allowPrivilegeEscalation",
        8,
        restricted::privilege_escalation,
    ),
    instead_of(
        "capabilities_baseline",
        check("capabilities_restricted", 22, restricted::capabilities),
    ),
    instead_of(
        "procMount",
        check("procMount_restricted", 35, restricted::proc_mount),
    ),
    instead_of(
        "hostPathVolumes",
        check("restrictedVolumes", 0, restricted::volumes),
    ),
    check("runAsNonRoot", 0, restricted::run_as_non_root),
    check("runAsUser", 23, restricted::run_as_user),
    instead_of(
        "seccompProfile_baseline",
        check("seccompProfile_restricted", 19, restricted::seccomp_profile),
    ),
];

/// The violations of a level by a pod, for a minor release. A later release than the served one
/// counts as the served one.
pub(super) fn violations_of(
    level: Level,
    minor: Option<u32>,
    pod: &Value,
    kube: KubeVersion,
) -> Vec<Violation> {
    let newest = kube.minor();
    let minor = minor.unwrap_or(newest).min(newest);
    let holds = |it: &&Check| it.since <= minor;
    let restricted: Vec<&Check> = match level {
        Level::Privileged => return Vec::new(),
        Level::Baseline => Vec::new(),
        Level::Restricted => RESTRICTED.iter().filter(holds).collect(),
    };
    let replaced = |id: &str| restricted.iter().any(|it| it.instead_of == id);
    let baseline = BASELINE.iter().filter(holds).filter(|it| !replaced(it.id));
    let all = baseline.chain(restricted.iter().copied());
    all.filter_map(|it| (it.run)(pod, minor)).collect()
}

/// Every container of a pod.
pub(super) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod::containers(&pod["spec"]).map(|it| it.1)
}

/// The names of the containers that satisfy a predicate.
pub(super) fn named<'a>(
    pod: &'a Value,
    holds: impl Fn(&'a Value) -> bool,
) -> Vec<&'a str> {
    let found = containers(pod).filter(|it| holds(it));
    found.map(|it| text(it, "name")).collect()
}

/// The singular or the plural, depending on the count.
pub(super) fn plural<'a>(one: &'a str, several: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { several }
}

/// Strings in quotes.
pub(super) fn quoted(all: &[&str]) -> String {
    let all: Vec<String> = all.iter().map(|it| format!("\"{it}\"")).collect();
    all.join(", ")
}

/// The word `container` or `containers` with the names.
pub(super) fn containers_text(containers: &[&str]) -> String {
    let word = plural("container", "containers", containers.len());
    format!("{word} {}", quoted(containers))
}

/// The pod, the containers, or both, as the subject of a message.
pub(super) fn subject_text(pod: bool, containers: &[&str]) -> String {
    let own = pod.then(|| "pod".to_owned());
    let theirs = (!containers.is_empty()).then(|| containers_text(containers));
    let all: Vec<String> = own.into_iter().chain(theirs).collect();
    all.join(" and ")
}

/// Strings in their order, without duplicates.
pub(super) fn distinct<'a>(all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = all.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether a pod has its own user namespace; some checks do not apply to it from 1.35 on.
pub(super) fn has_own_users(pod: &Value, minor: u32) -> bool {
    minor >= 35 && pod["spec"]["hostUsers"] == false
}

/// Whether a pod runs on Windows; some checks do not apply to it from 1.25 on.
pub(super) fn is_windows(pod: &Value, minor: u32) -> bool {
    minor >= 25 && pod["spec"]["os"]["name"] == "windows"
}
