//! Which control groups are those of pods: no I/O, on the text of `/proc/<pid>/cgroup`.

/// The minimum number of characters of a uid: a UUID without hyphens, as for static pods.
const UID_BYTES: usize = 32;

/// From where control groups are seen.
///
/// In a control group namespace the paths are relative to the group of the agent's container:
/// `/../..` leads to the root, and what is inside has no name that says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// The hierarchy in which the first process of the host is seen from below, and how many groups
    /// this one is below the root.
    below: Option<(Vec<u8>, usize)>,
}

/// Whether a process is known to be outside the containers of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Outside,
    InPod,
    /// The text does not tell.
    Unknown,
}

impl View {
    /// The view of somebody who sees these groups of the host's first process.
    pub(super) fn new(groups_of_init: &[u8]) -> Self {
        let lines = lines(groups_of_init).flatten();
        let seen = lines.map(|(hierarchy, path)| (hierarchy.to_owned(), ups(path)));
        let below = seen.max_by_key(|(_, ups)| *ups);
        Self {
            below: below.filter(|(_, ups)| *ups > 0),
        }
    }

    /// Where a process with these groups is. `is_exiting` is read after them.
    pub(super) fn place(&self, groups: &[u8], is_exiting: bool) -> Place {
        let mut is_known = false;
        for line in lines(groups) {
            let Some((hierarchy, path)) = line else {
                return Place::Unknown;
            };
            if is_of_pod(path) || self.is_beside_the_agent(hierarchy, path) {
                return Place::InPod;
            }
            // Version 1 reports the root for a process that ends, and version 2 its group.
            if is_exiting && hierarchy != b"0:" {
                return Place::Unknown;
            }
            is_known = true;
        }
        if is_known {
            Place::Outside
        } else {
            Place::Unknown
        }
    }

    /// Whether a path does not leave the outermost group of the agent, which is that of all pods.
    fn is_beside_the_agent(&self, hierarchy: &[u8], path: &[u8]) -> bool {
        let below = self.below.as_ref();
        below.is_some_and(|(own, to_root)| own == hierarchy && ups(path) < *to_root)
    }
}

/// The lines: the hierarchy as `<number>:<controllers>`, and the path. `None` for another line.
fn lines(groups: &[u8]) -> impl Iterator<Item = Option<(&[u8], &[u8])>> {
    let lines = groups.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).map(|line| {
        let mut colons = (0..line.len()).filter(|index| line.get(*index) == Some(&b':'));
        let (_, second) = (colons.next()?, colons.next()?);
        Some((line.get(..second)?, line.get(second + 1..)?))
    })
}

/// How many groups a path goes up first.
fn ups(path: &[u8]) -> usize {
    let steps = path.split(|byte| *byte == b'/').skip(1);
    steps.take_while(|step| *step == b"..").count()
}

/// Whether a path is that of a pod: below `kubepods`, or, seen from another control group
/// namespace, below `pod` and a uid.
fn is_of_pod(path: &[u8]) -> bool {
    let mut steps = path.split(|byte| matches!(byte, b'/' | b':'));
    steps.any(|step| {
        let is_uid = |rest: &[u8]| {
            rest.len() >= UID_BYTES
                && rest
                    .iter()
                    .all(|it| it.is_ascii_hexdigit() || b"-_".contains(it))
        };
        // A kubelet below another group, as in a container, has a slice `kubelet-kubepods`.
        let is_all_pods =
            step.starts_with(b"kubepods") || step.starts_with(b"kubelet-kubepods");
        is_all_pods || step.strip_prefix(b"pod").is_some_and(is_uid)
    })
}

#[cfg(test)]
mod tests {
    use super::{Place, View};

    const UID: &str = "8a4b2c6e-1f0d-4b5a-9c3e-7d2f1a6b8c90";

    fn place(init: &str, groups: &str) -> Place {
        View::new(init.as_bytes()).place(groups.as_bytes(), false)
    }

    #[test]
    fn version_2_names_pods_by_either_driver() {
        let init = "0::/init.scope\n";
        let rows = [
            (
                "0::/user.slice/user-1000.slice/session-2.scope",
                Place::Outside,
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x (deleted)",
                Place::Outside,
            ),
            ("0::/system.slice/podman.service", Place::Outside),
            ("0::/", Place::Outside),
            ("0::/kubepods/burstable/pod$UID/abc", Place::InPod),
            (
                "0::/kubepods.slice/kubepods-besteffort.slice/\
                 kubepods-besteffort-pod8a4b2c6e_1f0d.slice/cri-containerd-abc.scope",
                Place::InPod,
            ),
            (
                "0::/kubelet.slice/kubelet-kubepods.slice/x.scope",
                Place::InPod,
            ),
            // The colons are those of the systemd driver of some runtimes.
            (
                "0::/system.slice/containerd.service/kubepods-pod8a4b.slice:cri-containerd:abc",
                Place::InPod,
            ),
            ("0::/a:kubepods-pod8a4b.slice:cri", Place::InPod),
        ];
        for (groups, wanted) in rows {
            let groups = groups.replace("$UID", UID);
            assert_eq!(place(init, &groups), wanted, "{groups}");
        }
    }

    #[test]
    fn version_1_names_pods_in_any_hierarchy() {
        let init = "12:pids:/init.scope\n1:name=systemd:/init.scope\n0::/init.scope\n";
        let outside =
            "12:pids:/user.slice\n1:name=systemd:/user.slice/x.scope\n0::/user.slice\n";
        assert_eq!(place(init, outside), Place::Outside);
        let pod = format!("12:pids:/kubepods/pod{UID}/abc\n1:name=systemd:/\n0::/\n");
        assert_eq!(place(init, &pod), Place::InPod);
        let pod = format!("12:pids:/\n4:cpu,cpuacct:/kubepods/pod{UID}/abc\n0::/\n");
        assert_eq!(place(init, &pod), Place::InPod);
    }

    #[test]
    fn in_a_namespace_what_does_not_leave_the_group_of_all_pods_is_in_a_pod() {
        // The agent is in /kubepods/besteffort/pod<uid>/<container>.
        let init = "0::/../../../../init.scope\n";
        let rows = [
            (
                "0::/../../../../user.slice/user-1000.slice/session-2.scope",
                Place::Outside,
            ),
            ("0::/../../../..", Place::Outside),
            // Its own container, another one of its pod, other pods.
            ("0::/", Place::InPod),
            ("0::/child", Place::InPod),
            ("0::/../another-container", Place::InPod),
            ("0::/../../podx/abc", Place::InPod),
            ("0::/../../../burstable/podx/abc", Place::InPod),
        ];
        for (groups, wanted) in rows {
            assert_eq!(place(init, groups), wanted, "{groups}");
        }
        // Only version 1 has a namespace here, and the line of version 2 is the same for all.
        let init = "3:pids:/../../init.scope\n0::/\n";
        assert_eq!(
            place(init, "3:pids:/../../user.slice\n0::/\n"),
            Place::Outside
        );
        assert_eq!(place(init, "3:pids:/../abc\n0::/\n"), Place::InPod);
        // A namespace of which the first process says nothing: the names still tell.
        let groups = format!("0::/../../../pod{UID}/abc");
        assert_eq!(place("", &groups), Place::InPod);
        let groups =
            "0::/../kubepods-burstable-pod8a4b2c6e.slice/cri-containerd-abc.scope";
        assert_eq!(place("", groups), Place::InPod);
    }

    #[test]
    fn missing_groups_do_not_tell() {
        let init = "0::/init.scope\n";
        for groups in [
            "",
            "\n",
            "0",
            "0:/",
            "no groups",
            "0::/user.slice\n12:pids\n",
        ] {
            assert_eq!(place(init, groups), Place::Unknown, "{groups:?}");
        }
        // A hierarchy that names a pod decides, whatever the others say.
        assert_eq!(place(init, "0::/kubepods/x\nno groups"), Place::InPod);
    }

    #[test]
    fn the_groups_of_a_process_that_ends_tell_in_version_2_only() {
        let view = View::new(b"0::/init.scope\n");
        assert_eq!(view.place(b"0::/user.slice\n", true), Place::Outside);
        assert_eq!(view.place(b"0::/kubepods/x\n", true), Place::InPod);
        assert_eq!(
            view.place(b"12:pids:/\n0::/user.slice\n", true),
            Place::Unknown
        );
        assert_eq!(
            view.place(b"12:pids:/\n0::/user.slice\n", false),
            Place::Outside
        );
    }
}
