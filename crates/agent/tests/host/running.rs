//! Real processes, detected by events and by scans.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fivespot_agent::config::Config;
use fivespot_agent::connector::Connector;
use fivespot_agent::detect::{Detection, DetectionMode};
use fivespot_agent::proc::Proc;
use fivespot_agent::scan::ProcessMatch;

use crate::program::{Program, Running, called, containing, unique};

/// Long enough for any machine; an event that takes longer counts as missing.
const NEVER: Duration = Duration::from_mins(2);

fn proc() -> Proc {
    Proc::open(Path::new("/proc")).unwrap()
}

/// The detection modes of this host. Prints a note if process events are not available.
async fn modes() -> Vec<DetectionMode> {
    match Connector::subscribe().await {
        Ok(_) => vec![DetectionMode::Events, DetectionMode::Scan],
        Err(refused) => {
            eprintln!("NOT TESTED with process events, by scans only: {refused}");
            vec![DetectionMode::Scan]
        }
    }
}

async fn next(detection: &mut Detection, config: &Config) -> ProcessMatch {
    let next = tokio::time::timeout(NEVER, detection.next(config));
    next.await.expect("no process was detected").unwrap()
}

/// The first match of `config` after `start` has run.
async fn first_match(
    mode: DetectionMode,
    config: &Config,
    start: impl FnOnce() -> Running,
) -> (Running, ProcessMatch) {
    let mut detection = Detection::begin(proc(), mode).await.unwrap();
    let nothing = Config::parse("match_commands = [\"nothing is called this\"]").unwrap();
    // Completes the initial scan of /proc, so that later matches are of new processes.
    let patience = tokio::time::timeout(Duration::ZERO, detection.next(&nothing)).await;
    assert!(patience.is_err());
    let running = start();
    let process = next(&mut detection, config).await;
    (running, process)
}

#[tokio::test]
async fn a_program_is_detected_when_it_starts() {
    for mode in modes().await {
        let name = unique("five");
        let program = Program::copy("cat", &name);
        let start = || program.run::<&str>(&[]);
        let (running, process) = first_match(mode, &called(&name), start).await;
        assert_eq!(process.pid, running.pid());
        assert_eq!((process.pattern, process.by), (name, "comm"));
        assert!(process.started.is_some());
    }
}

#[tokio::test]
async fn a_running_program_is_detected_by_the_initial_scan() {
    for mode in modes().await {
        let name = unique("five");
        let program = Program::copy("cat", &name);
        let running = program.run::<&str>(&[]);
        let mut detection = Detection::begin(proc(), mode).await.unwrap();
        let process = next(&mut detection, &called(&name)).await;
        assert_eq!(process.pid, running.pid());
    }
}

#[tokio::test]
async fn a_rescan_finds_running_programs_of_new_patterns() {
    for mode in modes().await {
        let name = unique("five");
        let program = Program::copy("cat", &name);
        let start = || program.run::<&str>(&[]);
        let (first, _) = first_match(mode, &called(&name), start).await;
        let other = unique("five");
        let program = Program::copy("cat", &other);
        let mut detection = Detection::begin(proc(), mode).await.unwrap();
        next(&mut detection, &called(&name)).await;
        drop(first);
        let running = program.run::<&str>(&[]);
        detection.rescan();
        let process = next(&mut detection, &called(&other)).await;
        assert_eq!(process.pid, running.pid());
    }
}

#[tokio::test]
async fn a_name_over_15_bytes_is_detected_of_a_program_and_of_a_script() {
    for mode in modes().await {
        let name = unique("a-program-with-a-long-name-");
        let program = Program::copy("cat", &name);
        let start = || program.run::<&str>(&[]);
        let (running, process) = first_match(mode, &called(&name), start).await;
        assert_eq!((process.pid, process.by), (running.pid(), "comm"));

        let name = unique("a-script-with-a-long-name-");
        let script = Program::script("read line", &name);
        let start = || script.run::<&str>(&[]);
        let (running, process) = first_match(mode, &called(&name), start).await;
        assert_eq!(process.pid, running.pid());
    }
}

#[tokio::test]
async fn a_long_name_with_the_same_beginning_does_not_match() {
    let stem = unique("a-long-name-");
    let other = Program::copy("cat", &format!("{stem}-one"));
    let meant = Program::copy("cat", &format!("{stem}-two"));
    for mode in modes().await {
        let _other = other.run::<&str>(&[]);
        let config = called(&format!("{stem}-two"));
        let start = || meant.run::<&str>(&[]);
        let (running, process) = first_match(mode, &config, start).await;
        assert_eq!(process.pid, running.pid());
    }
}

#[tokio::test]
async fn a_process_that_renames_itself_is_detected_by_its_new_name() {
    for mode in modes().await {
        let name = unique("re");
        let script = format!("printf {name} > /proc/$$/comm; read line");
        let start = || Running::start(Command::new("sh").args(["-c", &script]));
        let (running, process) = first_match(mode, &called(&name), start).await;
        assert_eq!((process.pid, process.by), (running.pid(), "comm"));
    }
}

#[tokio::test]
async fn a_program_is_detected_by_its_first_argument() {
    use std::os::unix::process::CommandExt as _;
    for mode in modes().await {
        let name = unique("first");
        let start = || Running::start(Command::new("cat").arg0(format!("/opt/{name}")));
        let (running, process) = first_match(mode, &called(&name), start).await;
        assert_eq!((process.pid, process.by), (running.pid(), "argv[0]"));
    }
}

#[tokio::test]
async fn empty_arguments_and_arguments_that_are_not_utf8_are_searched() {
    for mode in modes().await {
        let part = unique("part");
        let arguments = [
            OsStr::from_bytes(b"-c"),
            OsStr::from_bytes(b"read line"),
            OsStr::from_bytes(b"\xff\xfe\x80"),
            OsStr::from_bytes(b""),
            OsStr::from_bytes(b""),
            OsStr::new(&part),
            OsStr::from_bytes(b"\xc3"),
        ];
        let start = || Running::start(Command::new("sh").args(arguments));
        let config = containing(&format!("  {part} "));
        let (running, process) = first_match(mode, &config, start).await;
        assert_eq!((process.pid, process.by), (running.pid(), "command line"));
    }
}

#[tokio::test]
async fn the_agent_itself_never_matches() {
    let own = std::env::args().next().unwrap();
    let own = Path::new(&own).file_name().unwrap().to_str().unwrap();
    // A process with the name of this test binary.
    let program = Program::copy("cat", own);
    let running = program.run::<&str>(&[]);
    for mode in modes().await {
        let mut detection = Detection::begin(proc(), mode).await.unwrap();
        // A child that another test has forked and that has not called exec yet has this name too.
        loop {
            let process = next(&mut detection, &called(own)).await;
            assert_ne!(process.pid, std::process::id());
            if process.pid == running.pid() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn one_of_a_thousand_processes_is_detected() {
    let crowd = Program::copy("cat", &unique("crowd"));
    let running: Vec<Running> = (0..1000).map(|_| crowd.run::<&str>(&[])).collect();
    for mode in modes().await {
        let name = unique("five");
        let program = Program::copy("cat", &name);
        let start = || program.run::<&str>(&[]);
        let (one, process) = first_match(mode, &called(&name), start).await;
        assert_eq!(process.pid, one.pid());
    }
    drop(running);
}

#[tokio::test]
async fn a_program_that_runs_for_5_ms_is_detected_by_its_event() {
    if let Err(refused) = Connector::subscribe().await {
        eprintln!("NOT TESTED, needs process events: {refused}");
        return;
    }
    let name = unique("five");
    let program = Program::copy("sleep", &name);
    let mut detection = Detection::begin(proc(), DetectionMode::Events)
        .await
        .unwrap();
    // It stays readable until it is reaped, so that the test also succeeds on a busy machine.
    let mut running = program.run(&["0.005"]);
    let process = next(&mut detection, &called(&name)).await;
    assert_eq!(process.pid, running.pid());
    running.end();
}

#[tokio::test]
async fn a_reused_pid_is_not_taken_for_the_earlier_process() {
    const LAST: &str = "/proc/sys/kernel/ns_last_pid";
    let name = unique("five");
    let program = Program::copy("cat", &name);
    let proc = proc();
    let mut first = program.run::<&str>(&[]);
    let pid = first.pid();
    let opened = proc.process(pid).unwrap();
    // The kernel may resume the parent before it has set the child's name.
    while opened.names().unwrap().comm() != name.as_bytes() {
        tokio::task::yield_now().await;
    }
    let started = opened.stat().unwrap().started;
    first.end();
    assert_eq!(opened.names(), None);
    // Another process of the machine may be given the PID instead, which is fine too.
    let mut others = Vec::new();
    let other = loop {
        if let Err(error) = fs::write(LAST, (pid - 1).to_string()) {
            eprintln!("NOT TESTED, needs CAP_CHECKPOINT_RESTORE for {LAST}: {error}");
            return;
        }
        others.push(Running::start(Command::new("cat").arg("-")));
        if let Some(other) = proc.process(pid) {
            break other;
        }
    };
    assert_eq!(
        opened.names(),
        None,
        "the earlier process is gone, even if its PID is reused"
    );
    assert_eq!(opened.stat(), None);
    if let (Some(names), Some(stat)) = (other.names(), other.stat()) {
        assert_ne!(names.comm(), name.as_bytes());
        assert!(stat.started >= started);
    }
}

/// Runs as in the output of `5spot generate agent --kernel 6.6`.
#[tokio::test]
async fn from_linux_6_6_on_an_agent_without_root_receives_events() {
    const NOBODY: u32 = 65532;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-', '\n']).map(str::parse::<u32>);
    let mut number = || numbers.next().and_then(Result::ok).unwrap_or_default();
    let kernel = (number(), number());
    if let Err(refused) = Connector::subscribe().await {
        eprintln!("NOT TESTED, needs process events: {refused}");
        return;
    }
    if kernel < (6, 6) {
        eprintln!("NOT TESTED, needs Linux 6.6: {release}");
        return;
    }
    let agent =
        Program::copy(env!("CARGO_BIN_EXE_5spot-reclaim-agent"), &unique("agent"));
    // Changing from root to another user drops every capability.
    let ran = Command::new(&agent.path)
        .arg("doctor")
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    let answer = match ran {
        Ok(output) => String::from_utf8(output.stdout).unwrap(),
        Err(error) => {
            eprintln!("NOT TESTED, needs root to be somebody else: {error}");
            return;
        }
    };
    assert!(answer.starts_with("process events  ok"), "{answer}");
    assert!(answer.contains("\n/proc           ok"), "{answer}");
}
