use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{
    Installed, PODS, PODS_UNIT, Service, UNIT, install, installed, quoted, uninstall,
};
use crate::test_host::TestHost;

/// The root of a host with systemd, the agent's program and a kubeconfig.
struct Host(TestHost);

impl Host {
    fn new(name: &str) -> Self {
        let host = Self(TestHost::new(&format!("service-{name}")));
        fs::create_dir_all(host.0.join("etc/systemd/system")).unwrap();
        host.write("usr/bin/agent", "program", 0o755);
        host.write("etc/5spot/kubeconfig", "kubeconfig", 0o600);
        host
    }

    fn write(&self, path: &str, text: &str, mode: u32) {
        self.0.write(path, text);
        fs::set_permissions(self.0.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn unit(&self) -> PathBuf {
        self.0.join("etc/systemd/system").join(UNIT)
    }

    /// All files, relative to the root.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut directories = vec![self.0.to_path_buf()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    directories.push(entry.path());
                } else {
                    let path = entry.path();
                    files
                        .push(path.strip_prefix(&*self.0).unwrap().display().to_string());
                }
            }
        }
        files.sort_unstable();
        files
    }

    fn install(&self, service: &Service) -> String {
        self.0.printed(|out| install(service, &self.0, out))
    }

    fn uninstall(&self) -> String {
        self.0.printed(|out| uninstall(&self.0, false, out))
    }
}

fn service() -> Service {
    Service {
        program: "/usr/bin/agent".into(),
        kubeconfig: "/etc/5spot/kubeconfig".into(),
        machine_kubeconfig: None,
        arguments: vec![
            "--node-name=worker-1".to_owned(),
            "--signal-file=/run/desk/in use".to_owned(),
        ],
        signal_files: vec!["/run/desk/in use".into()],
        holds_pods: true,
        looks_into_processes: false,
        notifies: false,
    }
}

/// The keys of `[Service]`, with all values of each.
fn keys(unit: &str) -> BTreeMap<String, Vec<String>> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut section = "";
    for line in unit.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[Service]"
            && let Some((key, value)) = line.split_once('=')
            && !line.starts_with('#')
        {
            keys.entry(key.to_owned())
                .or_default()
                .push(value.to_owned());
        }
    }
    keys
}

#[test]
fn the_units_are_as_people_read_them() {
    for (unit, text) in service().files().unwrap() {
        let (first, rest) = text.split_once('\n').unwrap();
        let hash = fivespot_api::reclaim::config_hash(rest);
        assert!(first.ends_with(&format!(": {hash}")), "{first}");
        insta::assert_snapshot!(unit, rest);
    }
}

#[test]
fn the_service_gains_no_privileges_and_sees_only_what_it_reads() {
    let keys = keys(&service().text().unwrap());
    let value = |key: &str| keys.get(key).map(|values| values.join("|"));
    let set = |key: &str, wanted: &str| {
        assert_eq!(value(key).as_deref(), Some(wanted), "{key}");
    };
    set("DynamicUser", "yes");
    set("CapabilityBoundingSet", "");
    set("AmbientCapabilities", "");
    set(
        "SystemCallFilter",
        "@system-service|~@privileged @resources process_vm_readv process_vm_writev",
    );
    set(
        "RestrictAddressFamilies",
        "AF_INET AF_INET6 AF_NETLINK AF_UNIX",
    );
    set("ProtectSystem", "strict");
    set("SystemCallErrorNumber", "EPERM");
    set("MemoryMax", "64M");
    for key in [
        "NoNewPrivileges",
        "ProtectHome",
        "PrivateTmp",
        "PrivateDevices",
        "ProtectClock",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "LockPersonality",
        "MemoryDenyWriteExecute",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
    ] {
        set(key, "yes");
    }
    // With these it would not see the processes of the host, or not be told about them.
    for key in [
        "ProtectProc",
        "ProcSubset",
        "PrivateNetwork",
        "PrivateUsers",
        "User",
    ] {
        assert_eq!(value(key), None, "{key}");
    }
    // It asks logind at a socket below /run, which is read-only for it and not hidden.
    for key in [
        "InaccessiblePaths",
        "TemporaryFileSystem",
        "RootDirectory",
        "IPAddressDeny",
    ] {
        assert_eq!(value(key), None, "{key}");
    }
    let bus = std::path::Path::new(crate::signal::SYSTEM_BUS);
    assert!(!super::HIDDEN.iter().any(|hidden| bus.starts_with(hidden)));
    // A directory that outlives a service with a dynamic user is hidden from other users.
    assert_eq!(value("RuntimeDirectoryPreserve"), None);
    // Control groups are writable for their owner: root, except for what it is given.
    set("ProtectControlGroups", "no");
    let none = Service {
        holds_pods: false,
        ..service()
    };
    let none = none.text().unwrap();
    assert!(none.contains("ProtectControlGroups=yes"), "{none}");
    assert!(!none.contains(PODS_UNIT) && !none.contains("StateDirectory"));
    // Only what runs before it is run as root.
    let commands = [value("ExecStartPre"), value("ExecStart")].map(Option::unwrap);
    assert!(
        commands[0].starts_with("+/usr/bin/install -d "),
        "{commands:?}"
    );
    assert!(commands[1].starts_with("/usr/bin/agent "), "{commands:?}");
    let kubeconfig = value("LoadCredential").unwrap();
    assert_eq!(kubeconfig, "kubeconfig:/etc/5spot/kubeconfig");
}

#[test]
fn only_a_service_that_reads_graphics_cards_may_look_into_processes() {
    let looking = Service {
        looks_into_processes: true,
        ..service()
    };
    let looking = keys(&looking.text().unwrap());
    let mut usual = keys(&service().text().unwrap());
    for key in ["CapabilityBoundingSet", "AmbientCapabilities"] {
        let both = "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH".to_owned();
        usual.insert(key.to_owned(), vec![both]);
    }
    usual.insert("ReadOnlyPaths".to_owned(), vec!["/proc".to_owned()]);
    assert_eq!(looking, usual);
}

#[test]
fn the_service_of_pods_may_give_two_files_to_the_agent_and_nothing_else() {
    let keys = keys(PODS);
    let value = |key: &str| keys.get(key).map(|values| values.join("|"));
    let set = |key: &str, wanted: &str| {
        assert_eq!(value(key).as_deref(), Some(wanted), "{key}");
    };
    set("CapabilityBoundingSet", "CAP_CHOWN");
    set("AmbientCapabilities", "");
    set("PrivateNetwork", "yes");
    set("RestrictAddressFamilies", "none");
    set("ProtectSystem", "strict");
    let groups = "/sys/fs/cgroup/kubepods*";
    let files = format!("{groups}/cgroup.freeze {groups}/cgroup.kill 2>/dev/null");
    set(
        "ExecStart",
        &format!(
            "/bin/sh -c 'while sleep 2; do chown --reference=/run/5spot/agent {files}; done'"
        ),
    );
    set(
        "ExecStopPost",
        &format!("-/bin/sh -c 'chown root:root {files}'"),
    );
}

/// Which of the units start before which, by the keys of all. systemd stops them in the reverse order.
fn starts_before(units: &[(&'static str, String)]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for (unit, text) in units {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        for (key, others) in lines {
            for other in others.split_whitespace().map(str::to_owned) {
                match key {
                    "Before" => pairs.push(((*unit).to_owned(), other)),
                    "After" => pairs.push((other, (*unit).to_owned())),
                    _ => {}
                }
            }
        }
    }
    pairs
}

#[test]
fn the_agent_stops_before_the_files_are_taken_from_it_by_which_pods_go_on() {
    let units = service().files().unwrap();
    let order = starts_before(&units);
    let is_before = |first: &str, second: &str| {
        order.contains(&(first.to_owned(), second.to_owned()))
    };
    assert!(is_before(PODS_UNIT, UNIT), "{order:?}");
    assert!(!is_before(UNIT, PODS_UNIT), "{order:?}");
    // Both stop together: else the order says nothing.
    let pods = units.iter().find(|(unit, _)| *unit == PODS_UNIT).unwrap();
    let bound = format!("BindsTo={UNIT}");
    assert!(pods.1.lines().any(|line| line == bound), "{}", pods.1);
}

#[test]
fn the_service_of_pods_starts_before_the_agent_and_gives_it_the_files_then() {
    const AGENT: u32 = 61_003;
    let host = TestHost::new("service-chown");
    let file = "cgroup/kubepods.slice/cgroup.freeze";
    host.write(file, "0");
    host.write("cgroup/kubepods.slice/cgroup.kill", "");
    if chown(host.join(file), Some(0), None).is_err() {
        eprintln!("NOT TESTED, needs root to give files to another user");
        return;
    }
    let keys = keys(PODS);
    let command = |key: &str| {
        let text = keys[key]
            .join("")
            .replace("/run/5spot", &host.display().to_string());
        let groups = host.join("cgroup").display().to_string();
        let text = text.replace("/sys/fs/cgroup", &groups);
        let script = text.split('\'').nth(1).unwrap();
        // It says that it has looked, and looks again when it is told to.
        let script = script.replace("sleep 2", "echo && read turn");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    let owner = || fs::metadata(host.join(file)).unwrap().uid();
    let mut child = command("ExecStart").spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let mut look = || {
        writeln!(input).unwrap();
        lines.next().unwrap().unwrap();
    };
    // The agent's directory is not there.
    look();
    look();
    assert_eq!(owner(), 0);
    fs::create_dir(host.join("agent")).unwrap();
    chown(host.join("agent"), Some(AGENT), None).unwrap();
    look();
    assert_eq!(owner(), AGENT);
    drop(input);
    child.wait().unwrap();
    assert!(command("ExecStopPost").status().unwrap().success());
    assert_eq!(owner(), 0);
}

#[test]
fn systemd_accepts_the_units() {
    let host = Host::new("verify");
    let program = Service {
        program: "/bin/true".into(),
        looks_into_processes: true,
        ..service()
    };
    let units = program.files().unwrap();
    let paths = units.iter().map(|(unit, text)| {
        let path = host.unit().with_file_name(unit);
        fs::write(&path, text).unwrap();
        path
    });
    let paths: Vec<PathBuf> = paths.collect();
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(paths)
        .output();
    match verify {
        Err(error) => eprintln!("NOT TESTED, needs systemd-analyze: {error}"),
        Ok(output) => {
            let printed = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8_lossy(&printed);
            assert!(output.status.success(), "{printed}");
            assert!(!printed.contains("5spot-reclaim-agent"), "{printed}");
        }
    }
}

#[test]
fn what_is_installed_is_removed_and_nothing_else() {
    let host = Host::new("install");
    let before = host.files();
    insta::assert_snapshot!(host.uninstall(), @"
    not installed: there is no DIR/etc/systemd/system/5spot-reclaim-agent.service
    exit code 1
    ");
    insta::assert_snapshot!(host.install(&service()), @"
    wrote DIR/etc/systemd/system/5spot-reclaim-agent-pods.service
    wrote DIR/etc/systemd/system/5spot-reclaim-agent.service
    to start it:
      systemctl daemon-reload
      systemctl enable --now 5spot-reclaim-agent.service
    exit code 0
    ");
    let mode = fs::metadata(host.unit()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let mut with_unit = before.clone();
    for unit in [UNIT, PODS_UNIT] {
        with_unit.push(format!("etc/systemd/system/{unit}"));
    }
    with_unit.sort_unstable();
    assert_eq!(host.files(), with_unit);
    // A drop-in of the administrator stays.
    host.write(&format!("etc/systemd/system/{UNIT}.d/own.conf"), "", 0o644);
    insta::assert_snapshot!(host.0.printed(|out| uninstall(&host.0, true, out)), @"
    would remove DIR/etc/systemd/system/5spot-reclaim-agent.service
    would remove DIR/etc/systemd/system/5spot-reclaim-agent-pods.service
    exit code 0
    ");
    assert!(host.unit().exists());
    insta::assert_snapshot!(host.uninstall(), @"
    removed DIR/etc/systemd/system/5spot-reclaim-agent.service
    removed DIR/etc/systemd/system/5spot-reclaim-agent-pods.service
    to forget it:
      systemctl daemon-reload
    exit code 0
    ");
    let mut with_drop_in = before;
    with_drop_in.push(format!("etc/systemd/system/{UNIT}.d/own.conf"));
    with_drop_in.sort_unstable();
    assert_eq!(host.files(), with_drop_in);
}

#[test]
fn the_entry_of_desktops_is_written_and_removed_with_the_service() {
    let host = Host::new("desktop");
    let service = Service {
        notifies: true,
        ..service()
    };
    insta::assert_snapshot!(host.install(&service), @"
    error: --desktop: there is no DIR/etc/xdg/autostart; leave it out on a host without one
    exit code 2
    ");
    assert!(!host.unit().exists());
    fs::create_dir_all(host.0.join("etc/xdg/autostart")).unwrap();
    host.install(&service);
    let path = host.0.join("etc/xdg/autostart/5spot-reclaim-agent.desktop");
    let text = fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.starts_with("# Written by "), "{first}");
    insta::assert_snapshot!(rest, @"
    [Desktop Entry]
    Type=Application
    Name=5-Spot
    Comment=Says before this computer is lent, and asks
    TryExec=/usr/bin/agent
    Exec=/usr/bin/agent notify
    NoDisplay=true
    ");
    let validate = Command::new("desktop-file-validate").arg(&path).output();
    match validate {
        Err(error) => eprintln!("NOT TESTED, needs desktop-file-validate: {error}"),
        Ok(output) => {
            let printed = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8_lossy(&printed);
            assert!(output.status.success() && printed.is_empty(), "{printed}");
        }
    }
    // Somebody has changed it.
    fs::write(&path, text.replace("5-Spot", "Desk")).unwrap();
    insta::assert_snapshot!(host.uninstall(), @"
    error: DIR/etc/xdg/autostart/5spot-reclaim-agent.desktop: is not as this program wrote it; remove it by hand; a user changes it by a copy in ~/.config/autostart
    exit code 2
    ");
    assert!(host.unit().exists());
    fs::write(&path, text).unwrap();
    // It goes with the wish for it.
    let none = Service {
        notifies: false,
        ..service.clone()
    };
    let printed = host.install(&none);
    let removed = "removed DIR/etc/xdg/autostart/5spot-reclaim-agent.desktop";
    assert!(printed.contains(removed) && !path.exists(), "{printed}");
    host.install(&service);
    let printed = host.uninstall();
    assert!(printed.contains(removed) && !path.exists(), "{printed}");
    let autostart = fs::read_dir(host.0.join("etc/xdg/autostart")).unwrap();
    assert_eq!(autostart.count(), 0);
}

#[test]
fn a_unit_is_replaced_unless_somebody_has_changed_it() {
    let host = Host::new("changed");
    host.install(&service());
    let other = Service {
        arguments: vec!["--node-name=worker-2".to_owned()],
        ..service()
    };
    host.install(&other);
    let text = fs::read_to_string(host.unit()).unwrap();
    assert!(text.contains("worker-2"), "{text}");
    assert_eq!(installed(&host.0).unwrap(), Installed::AsWritten);
    let changed = text.replace("Restart=always", "Restart=no");
    fs::write(host.unit(), &changed).unwrap();
    assert_eq!(installed(&host.0).unwrap(), Installed::Changed);
    insta::assert_snapshot!(host.install(&service()), @"
    error: DIR/etc/systemd/system/5spot-reclaim-agent.service: is not as this program wrote it; remove it by hand; changes belong into a drop-in (systemctl edit)
    exit code 2
    ");
    insta::assert_snapshot!(host.uninstall(), @"
    error: DIR/etc/systemd/system/5spot-reclaim-agent.service: is not as this program wrote it; remove it by hand; changes belong into a drop-in (systemctl edit)
    exit code 2
    ");
    assert_eq!(fs::read_to_string(host.unit()).unwrap(), changed);
    // A unit of somebody else, and a link to one.
    fs::write(host.unit(), "[Service]\nExecStart=/bin/true\n").unwrap();
    assert_eq!(installed(&host.0).unwrap(), Installed::Changed);
    fs::remove_file(host.unit()).unwrap();
    symlink("/dev/null", host.unit()).unwrap();
    assert!(host.uninstall().starts_with("error: reading "));
    assert!(host.install(&service()).starts_with("error: reading "));
}

#[test]
fn the_unit_of_pods_goes_with_the_right_to_hold_them() {
    let host = Host::new("pods");
    host.install(&service());
    let none = Service {
        holds_pods: false,
        ..service()
    };
    insta::assert_snapshot!(host.install(&none));
    assert!(host.unit().exists());
    assert!(!host.unit().with_file_name(PODS_UNIT).exists());
}

#[test]
fn an_enabled_service_is_disabled_first() {
    let host = Host::new("enabled");
    host.install(&service());
    let wants = host.0.join("etc/systemd/system/multi-user.target.wants");
    fs::create_dir(&wants).unwrap();
    symlink(host.unit(), wants.join(UNIT)).unwrap();
    insta::assert_snapshot!(host.uninstall(), @"
    error: DIR/etc/systemd/system/5spot-reclaim-agent.service: is enabled; run systemctl disable --now 5spot-reclaim-agent.service first
    exit code 2
    ");
    assert!(host.unit().exists());
}

#[test]
fn what_the_service_could_not_use_is_refused_before_anything_is_written() {
    let host = Host::new("refused");
    let refused = |change: &dyn Fn(&mut Service)| {
        let mut service = service();
        change(&mut service);
        let printed = host.install(&service);
        assert!(!host.unit().exists());
        printed
    };
    insta::assert_snapshot!(refused(&|it| it.program = "agent".into()), @"
    error: --program: agent is not an absolute path of letters, digits and /._+-; give such a path
    exit code 2
    ");
    insta::assert_snapshot!(refused(&|it| it.program = "/usr/bin/my agent".into()), @"
    error: --program: /usr/bin/my agent is not an absolute path of letters, digits and /._+-; give such a path
    exit code 2
    ");
    insta::assert_snapshot!(refused(&|it| it.program = "/usr/bin/none".into()), @"
    error: --program: DIR/usr/bin/none: No such file or directory (os error 2); give the file that the service uses
    exit code 2
    ");
    insta::assert_snapshot!(refused(&|it| it.kubeconfig = "/etc/5spot".into()), @"
    error: --kubeconfig: DIR/etc/5spot: is not a regular file; give the file that the service uses
    exit code 2
    ");
    insta::assert_snapshot!(refused(&|it| it.arguments = vec!["a\nb".to_owned()]), @r#"
    error: the arguments of the service: "a\nb" has a control character; remove it
    exit code 2
    "#);
    insta::assert_snapshot!(refused(&|it| it.signal_files = vec!["/tmp/in-use".into()]), @"
    error: --signal-file: the service does not see /tmp/in-use; give one below /run
    exit code 2
    ");
    host.write("usr/bin/agent", "program", 0o775);
    insta::assert_snapshot!(refused(&|_| {}), @"
    error: --program: may be changed by users other than its owner; install it with mode 0755
    exit code 2
    ");
    host.write("usr/bin/agent", "program", 0o644);
    insta::assert_snapshot!(refused(&|_| {}), @"
    error: --program: is not executable; make it executable, or give another one with --program
    exit code 2
    ");
    host.write("usr/bin/agent", "program", 0o755);
    host.write("etc/5spot/kubeconfig", "kubeconfig", 0o644);
    insta::assert_snapshot!(refused(&|_| {}), @"
    error: --kubeconfig: may be read by other users than its owner; give it mode 0600
    exit code 2
    ");
    host.write("etc/5spot/kubeconfig", "kubeconfig", 0o600);
    fs::remove_dir_all(host.0.join("etc/systemd")).unwrap();
    insta::assert_snapshot!(refused(&|_| {}), @"
    error: writing DIR/etc/systemd/system/5spot-reclaim-agent-pods.service: No such file or directory (os error 2); run this as root, on a host with systemd
    exit code 2
    ");
}

#[test]
fn arguments_keep_their_meaning_in_a_unit() {
    let rows = [
        ("--node-name=worker-1", "--node-name=worker-1"),
        ("", "\"\""),
        ("a b", "\"a b\""),
        ("100%d", "100%%d"),
        ("$HOME", "$$HOME"),
        ("say \"hi\" \\ now", "\"say \\\"hi\\\" \\\\ now\""),
        ("it's;", "\"it's;\""),
        ("héllo", "\"héllo\""),
    ];
    for (argument, wanted) in rows {
        assert_eq!(quoted(argument).unwrap(), wanted);
    }
    assert!(quoted("a\nExecStartPre=+/bin/sh").is_err());
}
