//! `5spot-reclaim-agent install` and `uninstall`: the agent as a service of its host, by units of
//! systemd, and an entry by which the sessions of desktops notify their users.
//!
//! The agent talks to the network and has no privileges, unless it reads graphics cards. What it needs
//! to hold pods, two files of their control group, is given to it by a second service: it has one
//! capability, no network and no input.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fivespot_api::reclaim::config_hash;

use crate::bounded::{self, is_missing};
use crate::command::{Failure, Outcome, failed, refused};

/// The name of the agent's unit.
const UNIT: &str = "5spot-reclaim-agent.service";
/// The name of the unit that lets the agent hold pods.
const PODS_UNIT: &str = "5spot-reclaim-agent-pods.service";
/// The entry by which the session of every desktop notifies its user.
const ENTRY: &str = "5spot-reclaim-agent.desktop";
/// All that is written, in the order in which it is removed, with its directory: those of an
/// administrator.
const FILES: [(&str, &str); 3] = [(UNIT, UNITS), (PODS_UNIT, UNITS), (ENTRY, AUTOSTART)];
/// The directory of units.
const UNITS: &str = "etc/systemd/system";
/// The directory of what every session starts.
const AUTOSTART: &str = "etc/xdg/autostart";
/// How the first line begins; the hash of the lines after it follows.
const WRITTEN: &str =
    "# Written by 5spot-reclaim-agent install, sha256 of what follows: ";
/// The maximum size of a file in bytes that is compared.
const MAX_BYTES: u64 = 256 * 1024;
/// Directories that the service does not see.
const HIDDEN: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// The unit of the agent. What depends on the host is between two `@`.
const TEMPLATE: &str = include_str!("service/agent.service");
/// Of an agent that holds pods.
const HOLDS_PODS: &str = "\
# What it has done with pods, until an API server knows.
StateDirectory=5spot-reclaim-agent
# Control groups belong to root, except for two files that the service of pods gives to this one.
ProtectControlGroups=no";
const HOLDS_NONE: &str = "ProtectControlGroups=yes";
const LOOKS_NOWHERE: &str = "\
CapabilityBoundingSet=
AmbientCapabilities=";
/// Of an agent that sees which processes use a graphics card.
const LOOKS_INTO_PROCESSES: &str = "\
# Which files the processes of all users have open, and what a graphics card has done for them. Nothing
# in these processes is changed, and none is traced.
CapabilityBoundingSet=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH
AmbientCapabilities=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH
ReadOnlyPaths=/proc";
const PODS: &str = include_str!("service/pods.service");

/// The service of one host.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// The agent's program.
    pub(crate) program: PathBuf,
    /// The kubeconfig, which only root has to be able to read.
    pub(crate) kubeconfig: PathBuf,
    /// The kubeconfig for the cluster of the ScheduledMachine, if that is another one; as above.
    pub(crate) machine_kubeconfig: Option<PathBuf>,
    /// The agent's arguments, except for those that the unit sets.
    pub(crate) arguments: Vec<String>,
    /// The files among its signals.
    pub(crate) signal_files: Vec<PathBuf>,
    /// Whether it may hold the pods of the host.
    pub(crate) holds_pods: bool,
    /// Whether it may see which files all processes have open.
    pub(crate) looks_into_processes: bool,
    /// Whether the users of desktops are told before the host is lent.
    pub(crate) notifies: bool,
}

/// What a file is to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    Absent,
    AsWritten,
    /// Somebody has changed or written it.
    Changed,
}

impl Service {
    /// The files, each with its name.
    fn files(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut files = vec![(UNIT, written(&self.text()?))];
        if self.holds_pods {
            files.push((PODS_UNIT, written(PODS)));
        }
        if self.notifies {
            let program = plain("--program", &self.program)?;
            files.push((ENTRY, written(&entry(program))));
        }
        Ok(files)
    }

    /// The agent's unit.
    fn text(&self) -> Result<String, Failure> {
        let program = plain("--program", &self.program)?;
        let kubeconfig = plain("--kubeconfig", &self.kubeconfig)?;
        for path in &self.signal_files {
            if HIDDEN.iter().any(|hidden| path.starts_with(hidden)) {
                let why = format!("the service does not see {}", path.display());
                return Err(refused("--signal-file", why, "give one below /run"));
            }
        }
        let mut command =
            format!("{program} --kubeconfig %d/kubeconfig --run-directory /run/5spot");
        if self.holds_pods {
            command.push_str(" --state-directory %S/5spot-reclaim-agent");
        }
        let mut credentials = format!("LoadCredential=kubeconfig:{kubeconfig}");
        if let Some(path) = &self.machine_kubeconfig {
            let path = plain("--machine-kubeconfig", path)?;
            command.push_str(" --machine-kubeconfig %d/machine-kubeconfig");
            let _ = write!(credentials, "\nLoadCredential=machine-kubeconfig:{path}");
        }
        for argument in &self.arguments {
            let _ = write!(command, " {}", quoted(argument)?);
        }
        let (wants, holds) = if self.holds_pods {
            (format!(" {PODS_UNIT}"), HOLDS_PODS)
        } else {
            (String::new(), HOLDS_NONE)
        };
        let looks = if self.looks_into_processes {
            LOOKS_INTO_PROCESSES
        } else {
            LOOKS_NOWHERE
        };
        // The command last: it contains what a user has written.
        Ok(TEMPLATE
            .replace("@wants@", &wants)
            .replace("@credentials@", &credentials)
            .replace("@holds@", holds)
            .replace("@looks@", looks)
            .replace("@command@", &command))
    }

    /// Checks what the service needs below `root`.
    fn check(&self, root: &Path) -> Result<(), Failure> {
        let program = mode(root, "--program", &self.program)?;
        if program & 0o111 == 0 {
            let remedy = "make it executable, or give another one with --program";
            return Err(refused("--program", "is not executable", remedy));
        }
        if program & 0o022 != 0 {
            let why = "may be changed by users other than its owner";
            return Err(refused("--program", why, "install it with mode 0755"));
        }
        if self.notifies && !root.join(AUTOSTART).is_dir() {
            let why = format!("there is no {}", root.join(AUTOSTART).display());
            return Err(refused(
                "--desktop",
                why,
                "leave it out on a host without one",
            ));
        }
        let machine = self.machine_kubeconfig.as_ref();
        let machine = machine.map(|path| ("--machine-kubeconfig", path));
        for (flag, path) in [("--kubeconfig", &self.kubeconfig)]
            .into_iter()
            .chain(machine)
        {
            if mode(root, flag, path)? & 0o077 != 0 {
                let why = "may be read by other users than its owner";
                return Err(refused(flag, why, "give it mode 0600"));
            }
        }
        Ok(())
    }
}

/// The entry for the sessions of desktops.
fn entry(program: &str) -> String {
    format!(
        "\
[Desktop Entry]
Type=Application
Name=5-Spot
Comment=Says before this computer is lent, and asks
TryExec={program}
Exec={program} notify
NoDisplay=true
"
    )
}

/// A file with the line by which it is known.
fn written(text: &str) -> String {
    format!("{WRITTEN}{}\n{text}", config_hash(text))
}

/// The mode of a regular file below `root`.
fn mode(root: &Path, what: &str, path: &Path) -> Result<u32, Failure> {
    let below = root.join(path.strip_prefix("/").unwrap_or(path));
    let found = fs::metadata(&below)
        .and_then(|found| {
            let is_file = found.is_file().then_some(found);
            is_file.ok_or_else(|| io::Error::other("is not a regular file"))
        })
        .map_err(|error| {
            let what = format!("{what}: {}", below.display());
            failed(what, &error, "give the file that the service uses")
        })?;
    Ok(found.permissions().mode())
}

/// An absolute path that needs no escapes in a unit.
fn plain<'p>(what: &str, path: &'p Path) -> Result<&'p str, Failure> {
    let is_plain = |text: &&str| {
        let is_fine =
            |letter: char| letter.is_ascii_alphanumeric() || "/._+-".contains(letter);
        path.is_absolute() && text.chars().all(is_fine)
    };
    path.to_str().filter(is_plain).ok_or_else(|| {
        let why = format!(
            "{} is not an absolute path of letters, digits and /._+-",
            path.display()
        );
        refused(what, why, "give such a path")
    })
}

/// An argument as in `ExecStart=`.
fn quoted(argument: &str) -> Result<String, Failure> {
    if argument.chars().any(char::is_control) {
        let why = format!("{argument:?} has a control character");
        return Err(refused("the arguments of the service", why, "remove it"));
    }
    let escaped = argument
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    let is_word =
        |letter: char| letter.is_ascii_alphanumeric() || "/._=:,-%$".contains(letter);
    Ok(if !argument.is_empty() && argument.chars().all(is_word) {
        escaped
    } else {
        format!("\"{escaped}\"")
    })
}

/// Where a file of this name is.
fn path(root: &Path, name: &str) -> PathBuf {
    let found = FILES.iter().find(|(file, _)| *file == name);
    let directory = found.map_or(UNITS, |(_, directory)| directory);
    root.join(directory).join(name)
}

/// Whether the units are there, and as they were written.
pub(crate) fn installed(root: &Path) -> Result<Installed, Failure> {
    let [agent, pods] = [UNIT, PODS_UNIT].map(|unit| state(&path(root, unit)));
    Ok(match (agent?, pods?) {
        (Installed::Absent, Installed::Absent) => Installed::Absent,
        (Installed::Changed, _) | (_, Installed::Changed) => Installed::Changed,
        _ => Installed::AsWritten,
    })
}

/// Whether one file is there, and as it was written.
fn state(path: &Path) -> Result<Installed, Failure> {
    match bounded::read(path, MAX_BYTES) {
        Ok((text, _)) => {
            let lines = text.strip_prefix(WRITTEN);
            let is_as_written = lines
                .and_then(|rest| rest.split_once('\n'))
                .is_some_and(|(hash, rest)| hash == config_hash(rest));
            Ok(if is_as_written {
                Installed::AsWritten
            } else {
                Installed::Changed
            })
        }
        Err(error) if is_missing(&error) => Ok(Installed::Absent),
        Err(error) => {
            let what = format!("reading {}", path.display());
            Err(failed(what, &error, "remove it by hand"))
        }
    }
}

/// The paths of the files that are there. A failure if one is not as it was written.
fn own(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in FILES.map(|(name, _)| path(root, name)) {
        match state(&path)? {
            Installed::Absent => {}
            Installed::Changed => return Err(changed(&path)),
            Installed::AsWritten => found.push(path),
        }
    }
    Ok(found)
}

/// Prints the files that [`install`] would write.
pub(crate) fn show(service: &Service, out: &mut dyn Write) -> Result<Outcome, Failure> {
    for (index, (name, text)) in service.files()?.iter().enumerate() {
        let space = if index == 0 { "" } else { "\n" };
        let path = path(Path::new("/"), name);
        write!(out, "{space}# {}\n{text}", path.display())?;
    }
    Ok(Outcome::Yes)
}

/// Writes the files below `root`, in place of those that are as this program wrote them.
pub(crate) fn install(
    service: &Service,
    root: &Path,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let files = service.files()?;
    service.check(root)?;
    let before = own(root)?;
    // The agent's unit last: it wants the other one.
    for (name, text) in files.iter().rev() {
        let path = path(root, name);
        replace(&path, text)?;
        writeln!(out, "wrote {}", path.display())?;
    }
    let is_left = |path: &&PathBuf| files.iter().all(|(name, _)| !path.ends_with(name));
    for path in before.iter().filter(is_left) {
        remove(path)?;
        writeln!(out, "removed {}", path.display())?;
    }
    writeln!(
        out,
        "to start it:\n  systemctl daemon-reload\n  systemctl enable --now {UNIT}"
    )?;
    Ok(Outcome::Yes)
}

fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let written = fs::write(&new, text)
        .and_then(|()| fs::set_permissions(&new, fs::Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        let what = format!("writing {}", path.display());
        failed(what, &error, "run this as root, on a host with systemd")
    })
}

fn remove(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path).map_err(|error| {
        let what = format!("removing {}", path.display());
        failed(what, &error, "run this as root")
    })
}

/// Removes the files that [`install`] has written, and nothing else. [`Outcome::No`] if there are
/// none.
pub(crate) fn uninstall(
    root: &Path,
    is_dry_run: bool,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let found = own(root)?;
    if found.is_empty() {
        let path = path(root, UNIT);
        writeln!(out, "not installed: there is no {}", path.display())?;
        return Ok(Outcome::No);
    }
    let link = root.join(UNITS).join("multi-user.target.wants").join(UNIT);
    if fs::symlink_metadata(&link).is_ok() {
        let path = path(root, UNIT);
        let remedy = "run systemctl disable --now 5spot-reclaim-agent.service first";
        return Err(refused(path.display().to_string(), "is enabled", remedy));
    }
    for path in &found {
        if is_dry_run {
            writeln!(out, "would remove {}", path.display())?;
        } else {
            remove(path)?;
            writeln!(out, "removed {}", path.display())?;
        }
    }
    if !is_dry_run {
        writeln!(out, "to forget it:\n  systemctl daemon-reload")?;
    }
    Ok(Outcome::Yes)
}

fn changed(path: &Path) -> Failure {
    let why = "is not as this program wrote it";
    let remedy = if path.ends_with(ENTRY) {
        "remove it by hand; a user changes it by a copy in ~/.config/autostart"
    } else {
        "remove it by hand; changes belong into a drop-in (systemctl edit)"
    };
    refused(path.display().to_string(), why, remedy)
}

#[cfg(test)]
mod tests;
