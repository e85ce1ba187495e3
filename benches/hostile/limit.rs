//! The CPU limit of a measured program, as the kubelet sets it for a container.

use std::path::{Path, PathBuf};

use crate::BoxError;

/// The period over which the kernel applies the limit, in microseconds: the kubelet's.
const PERIOD: u32 = 100_000;

/// A control group with a CPU limit. Dropping it removes the group, after its process has ended.
pub(crate) struct CpuLimit(Option<PathBuf>);

impl Drop for CpuLimit {
    fn drop(&mut self) {
        if let Some(group) = &self.0 {
            // A group with a process that is still being ended cannot be removed. The next run
            // uses a group of its own.
            let _ = std::fs::remove_dir(group);
        }
    }
}

impl CpuLimit {
    /// Limits the process to this many thousandths of a core. 0 sets no limit.
    ///
    /// # Errors
    /// The control group cannot be made. The text says what is needed.
    pub(crate) fn apply(millicores: u32, process: u32) -> Result<Self, BoxError> {
        if millicores == 0 {
            return Ok(Self(None));
        }
        let name = format!("5spot-hostile-{process}");
        let quota = PERIOD / 1_000 * millicores;
        let (first, second) =
            (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let is_first_version = first.join("cpu.cfs_quota_us").exists()
            || first.join("cgroup.procs").exists();
        let (group, settings) = if is_first_version {
            let settings = vec![
                ("cpu.cfs_period_us", PERIOD.to_string()),
                ("cpu.cfs_quota_us", quota.to_string()),
            ];
            (first.join(name), settings)
        } else {
            let settings = vec![("cpu.max", format!("{quota} {PERIOD}"))];
            (second.join(name), settings)
        };
        let explained = |error: std::io::Error| {
            format!(
                "{}: {error}; the CPU limit needs root and the cpu controller of control groups: \
                 run it as root, or with --cpu-millis 0, which sets no limit",
                group.display()
            )
        };
        std::fs::create_dir_all(&group).map_err(explained)?;
        let made = Self(Some(group.clone()));
        for (file, value) in settings {
            std::fs::write(group.join(file), value).map_err(explained)?;
        }
        std::fs::write(group.join("cgroup.procs"), process.to_string())
            .map_err(explained)?;
        Ok(made)
    }
}
