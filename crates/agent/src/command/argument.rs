//! The arguments of `5spot-reclaim-agent`, and what they stand for.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use fivespot_program::log;
use fivespot_schedule::Duration;
use jiff::Timestamp;

use super::connection::{MachineName, machine};
use super::{Failure, failed, refused};
use crate::detect::DetectionMode;
use crate::hold::{HoldSettings, PodGroups};
use crate::proc::{Proc, Scope};
use crate::run_directory::DEFAULT;
use crate::service::Service;
use crate::signal::{
    Away, Counted, Graphics, InvalidSetting, LoadLimit, Settings, duration, parse_share,
};

/// The usual time between a freeze and the end of pods.
const FREEZE_FOR: Duration = Duration::minutes(1);
/// How long before a user is told that the host is lent.
const BEFORE: Duration = Duration::minutes(10);
/// Where control groups usually are.
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// Watch the processes of a node, and request a reclaim when a listed program runs.
///
/// The programs are listed in the ConfigMap reclaim-agent-NODE in the namespace 5spot-system, which
/// the operator writes from spec.killIfCommands. The request consists of three annotations on the
/// Node; the operator removes the machine. Other signals of the host's owner can be added with
/// --signal-file, --login-sessions, --load-above and --graphics-above. They also count while there is no such
/// ConfigMap.
#[derive(Debug, Parser)]
#[command(
    name = "5spot-reclaim-agent",
    version,
    after_help = "Examples:
  5spot-reclaim-agent --node-name worker-1
  5spot-reclaim-agent --dry-run --config reclaim.toml
  5spot-reclaim-agent doctor --node-name worker-1
  5spot-reclaim-agent reclaim --for 4h

Exit codes:
  0  Done. Of status: an agent runs, and nothing asks for this host
  1  The answer is no. Of reclaim: no agent runs that could read it. Of return: there was
     nothing to take back. Of status: something asks for this host, or no agent runs. Of
     uninstall: it is not installed
  2  Failed; the error says what to do"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// Name of the Node of this host
    #[arg(long, env = "NODE_NAME", value_name = "NAME", global = true)]
    pub(super) node_name: Option<String>,
    /// Directory where the host's /proc is mounted
    #[arg(
        long,
        env = "RECLAIM_PROC_ROOT",
        value_name = "DIR",
        default_value = "/proc",
        global = true
    )]
    pub(super) proc_root: PathBuf,
    /// File with the machine ID of this host
    #[arg(
        long,
        env = "MACHINE_ID_PATH",
        value_name = "FILE",
        default_value = "/etc/machine-id",
        global = true
    )]
    pub(super) machine_id_path: PathBuf,
    /// Do not compare the machine ID of the host with that of the Node
    #[arg(
        long,
        env = "SKIP_HOST_ID_CHECK",
        default_value_t = false,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_name = "true|false",
        global = true
    )]
    pub(super) skip_host_id_check: bool,
    /// Do not check that the admission policy which limits the agent to its own Node is in force;
    /// only for a simulation such as `5spot dev`, whose kubeconfig is that of an administrator
    #[arg(
        long,
        env = "SKIP_POLICY_CHECK",
        default_value_t = false,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_name = "true|false",
        global = true
    )]
    pub(super) skip_policy_check: bool,
    /// Ignore processes in containers of pods, and those whose control group is not known
    #[arg(
        long,
        env = "RECLAIM_OUTSIDE_CONTAINERS",
        default_value_t = false,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_name = "true|false",
        global = true
    )]
    pub(super) outside_containers: bool,
    /// Request a reclaim while this file exists, whatever is in it; may be repeated. Another program
    /// creates it while the owner wants the host, and removes it afterwards. In the environment:
    /// one file
    #[arg(long, env = "RECLAIM_SIGNAL_FILE", value_name = "PATH", global = true)]
    pub(super) signal_file: Vec<PathBuf>,
    /// Request a reclaim while a person is logged in at this host and in the foreground, according
    /// to systemd-logind
    #[arg(
        long,
        env = "RECLAIM_LOGIN_SESSIONS",
        value_name = "WHICH",
        value_enum,
        default_value_t,
        global = true
    )]
    pub(super) login_sessions: Counted,
    /// Of those sessions, do not count one at which nobody sits, as the desktop tells systemd-logind: on
    /// the bus of the system, at /run/dbus. While logind cannot be asked, all count
    #[arg(
        long,
        env = "RECLAIM_SESSION_AWAY",
        requires = "login_sessions",
        value_name = "WHICH",
        value_enum,
        global = true
    )]
    pub(super) session_away: Option<Away>,
    /// Request a reclaim while processes outside pods use more than this number of processors,
    /// averaged over --load-for. Needs the control groups of the host, which show what pods use
    #[arg(
        long,
        env = "RECLAIM_LOAD_ABOVE",
        value_name = "NUMBER",
        value_parser = LoadLimit::parse_above,
        global = true
    )]
    pub(super) load_above: Option<f64>,
    /// The time over which --load-above is averaged: digits and one of s, m, h, from 10s to 24h
    #[arg(
        long,
        env = "RECLAIM_LOAD_FOR",
        value_name = "DURATION",
        value_parser = LoadLimit::parse_time,
        default_value_t = LoadLimit::TIME,
        global = true
    )]
    pub(super) load_for: Duration,
    /// Request a reclaim while processes outside pods use an engine of a graphics card for more than this
    /// share of the time, as far as its driver says so, or have /dev/nvidia-uvm or /dev/kfd open. Needs
    /// the right to look into all processes, which `install` gives to the service
    /// [without a share: 0.3]
    #[arg(
        long,
        env = "RECLAIM_GRAPHICS_ABOVE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = Graphics::SHARE,
        value_name = "SHARE",
        value_parser = parse_share,
        global = true
    )]
    pub(super) graphics_above: Option<f64>,
    /// Directory by which the agent and the users of its host communicate: there the commands
    /// reclaim and return write, and the agent what status shows. Without it the agent takes no
    /// requests of users; the commands use /run/5spot
    #[arg(long, env = "RECLAIM_RUN_DIRECTORY", value_name = "DIR", global = true)]
    pub(super) run_directory: Option<PathBuf>,
    /// While something asks for this host and no API server answers: freeze its pods at once, and end
    /// them after --freeze-for. Needs control groups of version 2 that the agent may write; otherwise
    /// it logs why it does nothing
    #[arg(
        long,
        env = "RECLAIM_FREEZE_PODS",
        default_value_t = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_name = "true|false",
        global = true
    )]
    pub(super) freeze_pods: bool,
    /// How long pods are frozen before they are ended: digits and one of s, m, h, up to 24h
    #[arg(
        long,
        env = "RECLAIM_FREEZE_FOR",
        value_name = "DURATION",
        value_parser = freeze_for,
        default_value_t = FREEZE_FOR,
        global = true
    )]
    pub(super) freeze_for: Duration,
    /// Directory where the control groups of the host are mounted
    #[arg(
        long,
        env = "RECLAIM_CGROUP_ROOT",
        value_name = "DIR",
        default_value = CGROUP_ROOT,
        global = true
    )]
    pub(super) cgroup_root: PathBuf,
    /// Directory in which the agent keeps what it has done with pods, until it is on the Node. Without
    /// it, a restart of the agent forgets that
    #[arg(
        long,
        env = "RECLAIM_STATE_DIRECTORY",
        value_name = "DIR",
        global = true
    )]
    pub(super) state_directory: Option<PathBuf>,
    /// The ScheduledMachine of this host. While a reclaim stops it and spec.reclaim.return is set,
    /// the agent reports in an annotation since when this host is free of all signals, so that the
    /// machine returns
    #[arg(
        long,
        env = "RECLAIM_MACHINE",
        value_name = "NAMESPACE/NAME",
        value_parser = machine,
        global = true
    )]
    pub(super) machine: Option<MachineName>,
    /// Path of the kubeconfig for the cluster of the ScheduledMachine [default: as for the Node]
    #[arg(long, value_name = "PATH", requires = "machine", global = true)]
    pub(super) machine_kubeconfig: Option<PathBuf>,
    /// How processes are detected
    #[arg(
        long,
        env = "RECLAIM_DETECTION",
        value_enum,
        default_value_t,
        global = true
    )]
    pub(super) detection: DetectionMode,
    /// Scan once, print the matching processes and other signals, write nothing, and exit
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run, the configuration file to use instead of the node's own
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    pub(super) config: Option<PathBuf>,
    /// Path of the kubeconfig [default: $KUBECONFIG, ~/.kube/config, then the pod's service
    /// account]
    #[arg(long, value_name = "PATH", global = true)]
    pub(super) kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    pub(super) log: log::Settings,
    /// What a service is started with: all that is given to every command, except for what its unit sets.
    #[arg(skip)]
    of_service: Vec<String>,
}

/// What the unit of a service sets itself.
const OF_UNIT: [&str; 4] = [
    "kubeconfig",
    "machine_kubeconfig",
    "run_directory",
    "state_directory",
];

#[derive(Clone, Debug, Subcommand)]
pub(super) enum Command {
    /// Show which detection methods are available on this host, and why others are not
    Doctor,
    /// Ask for this host, as its user: the agent that runs here requests a reclaim
    ///
    /// Needs no rights in the cluster. It holds until its end, until `return`, or until the host
    /// starts again; a second time replaces the first.
    #[command(after_help = "\
Examples:
  5spot-reclaim-agent reclaim
  5spot-reclaim-agent reclaim --for 4h
  5spot-reclaim-agent reclaim --until 2026-11-27T18:00:00Z")]
    Reclaim {
        /// How long, from now on: digits and one of s, m, h
        #[arg(long = "for", value_name = "DURATION", conflicts_with = "until")]
        length: Option<Duration>,
        /// Until when: RFC 3339
        #[arg(long, value_name = "TIME", value_parser = instant)]
        until: Option<Timestamp>,
    },
    /// Take back what `reclaim` asked for; as root, for every user
    Return,
    /// Show whether the agent runs, and which signals ask for this host, since when and until when
    Status,
    /// Say on this user's desktop that the host is about to be lent, and ask whether it may
    ///
    /// Runs until the session ends, without rights in the cluster; `install --desktop` has every
    /// session start it. Needs the session bus, an agent that runs here with --machine, and
    /// spec.reclaim.return in that machine. While something asks for the host it says nothing.
    /// \"Not tonight\" is `reclaim --until` the end of the window, or 08:00 if that is not known;
    /// \"In an hour\" is `reclaim --for 1h`.
    Notify {
        /// How long before: digits and one of s, m, h, from 1m to 30m
        #[arg(
            long,
            value_name = "DURATION",
            value_parser = before,
            default_value_t = BEFORE
        )]
        before: Duration,
    },
    /// Run the agent as a service of this host: write units of systemd
    ///
    /// The service has the other options that are given here, such as --outside-containers. It is
    /// neither root nor a user of the host. A second unit gives it the two files by which it freezes
    /// and ends pods, unless --freeze-pods=false is given. Needs systemd 250 or later. A unit that has
    /// been changed is not replaced.
    #[command(after_help = "\
Examples:
  5spot-reclaim-agent install --node-name worker-1 --kubeconfig /etc/5spot/kubeconfig
  5spot-reclaim-agent install --node-name worker-1 --kubeconfig /etc/5spot/kubeconfig \\
    --login-sessions local --signal-file /run/desk/in-use --dry-run")]
    Install {
        /// Print the files, and write nothing
        #[arg(long = "dry-run")]
        only_shown: bool,
        /// Also write an entry in /etc/xdg/autostart, by which the session of every desktop starts
        /// `notify`
        #[arg(long)]
        desktop: bool,
        /// Directory that is the root of the host, for an image or a package
        #[arg(long, value_name = "DIR", default_value = "/")]
        root: PathBuf,
        /// Path of the agent's program on the host [default: this program]
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
    },
    /// Remove the files that `install` has written, and nothing else
    Uninstall {
        /// Say what would be removed, and remove nothing
        #[arg(long = "dry-run")]
        only_shown: bool,
        /// Directory that is the root of the host, for an image or a package
        #[arg(long, value_name = "DIR", default_value = "/")]
        root: PathBuf,
    },
}

fn freeze_for(text: &str) -> Result<Duration, InvalidSetting> {
    duration(text, [Duration::seconds(0), Duration::hours(24)])
}

fn before(text: &str) -> Result<Duration, InvalidSetting> {
    // An hour from then on must not be over before the host is lent.
    duration(text, [Duration::minutes(1), Duration::minutes(30)])
}

fn instant(text: &str) -> Result<Timestamp, String> {
    let instant = text.parse::<Timestamp>();
    instant.map_err(|_| "expected a time such as 2026-03-08T07:00:00Z".to_owned())
}

impl Args {
    /// Reads the words of a command line, the first of which is the program, and the environment.
    ///
    /// # Errors
    /// They are not valid, or ask for help.
    pub(super) fn read(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        Ok(Self {
            of_service: of_service(&command, &matches),
            ..Self::from_arg_matches(&matches)?
        })
    }

    /// The processes of this host.
    pub(super) fn proc(&self) -> Result<Proc, Failure> {
        let proc = Proc::open(&self.proc_root).map_err(|error| {
            let what = format!("reading {}", self.proc_root.display());
            failed(what, &error, "give the host's /proc with --proc-root")
        })?;
        Ok(proc.within(if self.outside_containers {
            Scope::OutsideContainers
        } else {
            Scope::Everywhere
        }))
    }

    /// The service that runs with these arguments.
    pub(super) fn service(
        &self,
        program: Option<PathBuf>,
        notifies: bool,
    ) -> Result<Service, Failure> {
        let program = match program {
            Some(program) => program,
            None => std::env::current_exe().map_err(|error| {
                failed("finding this program", &error, "give it with --program")
            })?,
        };
        let kubeconfig = self.kubeconfig.clone().ok_or_else(|| {
            refused(
                "--kubeconfig",
                "is missing",
                "give the file with which the agent reaches the cluster of its Node",
            )
        })?;
        if self
            .run_directory
            .as_deref()
            .is_some_and(|path| path != DEFAULT)
        {
            return Err(refused(
                "--run-directory",
                format!("is {DEFAULT} for a service"),
                "leave it out",
            ));
        }
        if self.state_directory.is_some() {
            return Err(refused(
                "--state-directory",
                "is that of the service",
                "leave it out",
            ));
        }
        if notifies && self.machine.is_none() {
            return Err(refused(
                "--desktop",
                "needs --machine: it says when the host is lent",
                "give the ScheduledMachine of this host",
            ));
        }
        self.named()?;
        Ok(Service {
            program,
            kubeconfig,
            machine_kubeconfig: self.machine_kubeconfig.clone(),
            arguments: self.of_service.clone(),
            signal_files: self.signal_file.clone(),
            holds_pods: self.freeze_pods,
            looks_into_processes: self.graphics_above.is_some(),
            notifies,
        })
    }

    /// What to do with pods while no API server answers.
    pub(super) fn hold(&self) -> Option<HoldSettings> {
        self.freeze_pods.then(|| HoldSettings {
            pods: PodGroups::new(self.cgroup_root.clone()),
            grace: jiff::SignedDuration::from(self.freeze_for).unsigned_abs(),
            state: self.state_directory.clone(),
        })
    }

    /// The signals of the command line.
    pub(super) fn signals(&self) -> Settings {
        Settings {
            files: self.signal_file.clone(),
            sessions: self.login_sessions,
            away: self.session_away,
            load: self.load_above.map(|above| LoadLimit {
                above,
                time: self.load_for,
            }),
            graphics: self.graphics_above,
        }
    }

    pub(super) fn named(&self) -> Result<&str, Failure> {
        let name = self.node_name.as_deref().filter(|name| !name.is_empty());
        name.ok_or_else(|| {
            refused(
                "--node-name",
                "is missing",
                "give the name of the Node of this host, or set NODE_NAME",
            )
        })
    }
}

/// The arguments for every command that differ from their defaults, except for those of [`OF_UNIT`].
fn of_service(command: &clap::Command, matches: &ArgMatches) -> Vec<String> {
    let mut words = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let values = matches.get_raw(id).unwrap_or_default().map(OsStr::to_owned);
        let values: Vec<OsString> = values.collect();
        if !argument.is_global_set()
            || OF_UNIT.contains(&id)
            || argument.get_default_values().iter().eq(&values)
        {
            continue;
        }
        let flag = argument.get_long().unwrap_or_default();
        words.extend(values.iter().map(|value| {
            if argument.get_action().takes_values() {
                format!("--{flag}={}", value.display())
            } else {
                format!("--{flag}")
            }
        }));
    }
    words
}
