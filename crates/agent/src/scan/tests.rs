use super::{Trigger, check, scan};
use crate::pattern::Patterns;
use crate::proc::{Proc, Scope};
use crate::test_host::TestHost;

/// A directory with the layout of `/proc`, removed when this is dropped.
struct FakeProc(TestHost);

impl FakeProc {
    fn new(name: &str) -> Self {
        Self(TestHost::new(&format!("scan-{name}")))
    }

    fn process(&self, pid: u32, comm: &[u8], cmdline: &[u8], state: &str) {
        let directory = self.0.join(pid.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("comm"), [comm, b"\n"].concat()).unwrap();
        std::fs::write(directory.join("cmdline"), cmdline).unwrap();
        let (state, flags) = state.split_once(' ').unwrap();
        let comm = String::from_utf8_lossy(comm);
        let stat = format!(
            "{pid} ({comm}) {state} 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n"
        );
        std::fs::write(directory.join("stat"), stat).unwrap();
    }

    fn seen(&self, patterns: &Patterns) -> Vec<u32> {
        let proc = Proc::open(&self.0).unwrap();
        let mut pids: Vec<u32> = scan(&proc, patterns)
            .unwrap()
            .map(|found| found.pid)
            .collect();
        pids.sort_unstable();
        pids
    }
}

const RUNNING: &str = "S 4194560";
const ENDED: &str = "Z 4194564";
const KERNEL: &str = "S 2129984";

fn both(pattern: &str) -> Patterns {
    Patterns::new(vec![pattern.to_owned()], vec![pattern.to_owned()])
}

#[test]
fn kernel_threads_never_match_by_any_name() {
    let fake = FakeProc::new("kernel");
    fake.process(2, b"steam", b"", KERNEL);
    fake.process(3, b"steam", b"", RUNNING);
    fake.process(4, b"steam", b"/usr/games/steam\0", RUNNING);
    assert_eq!(fake.seen(&both("steam")), [3, 4]);
}

#[test]
fn an_ended_process_matches_by_its_event_and_not_in_a_scan() {
    let fake = FakeProc::new("ended");
    fake.process(9, b"steam", b"", ENDED);
    assert_eq!(fake.seen(&both("steam")), [0_u32; 0]);
    let proc = Proc::open(&fake.0).unwrap();
    let seen = check(&proc, &both("steam"), 9, Trigger::Event).unwrap();
    assert_eq!((seen.pid, seen.started), (9, Some(77)));
}

#[test]
fn the_process_of_the_self_link_never_matches() {
    let fake = FakeProc::new("self");
    fake.process(30, b"steam", b"steam\0", RUNNING);
    fake.process(31, b"steam", b"steam\0", RUNNING);
    std::os::unix::fs::symlink("30", fake.0.join("self")).unwrap();
    assert_eq!(fake.seen(&both("steam")), [31]);
}

#[test]
fn other_entries_and_incomplete_processes_are_skipped() {
    let fake = FakeProc::new("odd");
    fake.process(5, b"steam", b"steam\0", RUNNING);
    for name in ["sys", "5x", "-5", "+6", "99999999999", "self", "7"] {
        std::fs::create_dir_all(fake.0.join(name)).unwrap();
    }
    std::fs::write(fake.0.join("8"), "a file").unwrap();
    assert_eq!(fake.seen(&both("steam")), [5]);
}

#[test]
fn a_missing_root_is_an_error() {
    assert!(Proc::open(std::path::Path::new("/nowhere/proc")).is_err());
}

#[test]
fn a_long_command_line_is_read_up_to_a_limit() {
    let fake = FakeProc::new("long");
    let within = [vec![b'x'; 100 * 1024], b" steam ".to_vec()].concat();
    let beyond = [vec![b'x'; 1024 * 1024], b" steam ".to_vec()].concat();
    fake.process(5, b"x", &within, RUNNING);
    fake.process(6, b"x", &beyond, RUNNING);
    assert_eq!(fake.seen(&both("steam")), [5]);
}

#[test]
fn processes_in_containers_of_pods_do_not_match_where_they_must_not() {
    let fake = FakeProc::new("containers");
    let uid = "8a4b2c6e-1f0d-4b5a-9c3e-7d2f1a6b8c90";
    let groups = [
        "0::/user.slice/user-1000.slice/session-2.scope".to_owned(),
        "0::/system.slice/podman.service".to_owned(),
        "0::/".to_owned(),
        format!("0::/kubepods/burstable/pod{uid}/abc"),
        "12:pids:/kubepods.slice/kubepods-besteffort.slice/x.scope\n0::/".to_owned(),
        format!("0::/../../../pod{uid}/abc"),
        "0::/../kubepods-burstable-pod8a4b2c6e.slice/cri-containerd-abc.scope".to_owned(),
        String::new(),
        format!("0::/{}", "user.slice/".repeat(6000)),
    ];
    for (pid, groups) in (1..).zip(&groups) {
        fake.process(pid, b"steam", b"steam\0", "S 4194560");
        let file = fake.0.join(pid.to_string()).join("cgroup");
        std::fs::write(file, format!("{groups}\n")).unwrap();
    }
    let patterns = Patterns::new(vec!["steam".to_owned()], Vec::new());
    let seen = |scope: Scope| {
        let proc = Proc::open(&fake.0).unwrap().within(scope);
        let mut pids: Vec<u32> = scan(&proc, &patterns)
            .unwrap()
            .map(|found| found.pid)
            .collect();
        pids.sort_unstable();
        pids
    };
    fake.process(10, b"steam", b"steam\0", "S 4194560");
    assert_eq!(
        seen(Scope::Everywhere),
        (1..=10).collect::<Vec<_>>(),
        "without groups, too"
    );
    assert_eq!(seen(Scope::OutsideContainers), [1, 2, 3]);
}

/// A process of a pod that ends while it is read must not pass for one of the host.
#[test]
fn an_ended_process_whose_group_is_not_known_does_not_match_outside_containers() {
    let fake = FakeProc::new("ended-container");
    let patterns = Patterns::new(vec!["steam".to_owned()], Vec::new());
    let groups = [
        "0::/user.slice",
        "0::/kubepods/x",
        // Version 1 reports the root, also for a process of a pod.
        "12:pids:/\n1:name=systemd:/",
        "",
    ];
    let proc = || Proc::open(&fake.0).unwrap();
    let seen: Vec<bool> = (1..)
        .zip(groups)
        .map(|(pid, groups)| {
            fake.process(pid, b"steam", b"", ENDED);
            let file = fake.0.join(pid.to_string()).join("cgroup");
            std::fs::write(file, format!("{groups}\n")).unwrap();
            let proc = proc().within(Scope::OutsideContainers);
            check(&proc, &patterns, pid, Trigger::Event).is_some()
        })
        .collect();
    assert_eq!(seen, [true, false, false, false]);
    for pid in 1..=4 {
        assert!(check(&proc(), &patterns, pid, Trigger::Event).is_some());
    }
}
