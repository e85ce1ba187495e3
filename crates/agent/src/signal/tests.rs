use std::fs;
use std::path::Path;
use std::time::Duration;

use fivespot_schedule::Duration as Length;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::test_host::TestHost;

use super::{
    Counted, Graphics, Load, LoadLimit, Now, OwnerSwitch, Reading, SELDOM, Sessions,
    Settings, Signal, SignalFile, Signals, Source,
};

/// So many seconds after the first reading.
fn after(start: Instant, seconds: u64) -> Now {
    let time: Timestamp = "2026-11-27T09:00:00Z".parse().unwrap();
    Now {
        time: time + SignedDuration::from_secs(seconds.try_into().unwrap()),
        instant: start + Duration::from_secs(seconds),
    }
}

/// The reason of the signal that stands, or why it is not known.
fn reason(source: &mut dyn Source, now: Now) -> Result<Option<String>, String> {
    let signal = source.read(now).map_err(|error| error.to_string())?;
    Ok(signal.map(|signal| signal.reason))
}

#[test]
fn a_signal_file_stands_while_there_is_anything_at_its_path() {
    let host = TestHost::new("signal-file");
    let path = host.join("desk/in-use");
    let mut source = SignalFile::new(path.clone());
    let now = after(Instant::now(), 0);
    let stands = Ok(Some(format!("signal-file: {}", path.display())));
    assert_eq!(reason(&mut source, now), Ok(None));
    host.write("desk", "not a directory");
    assert_eq!(reason(&mut source, now), Ok(None));
    host.remove("desk");
    host.write("desk/in-use", "any text");
    assert_eq!(reason(&mut source, now), stands);
    host.remove("desk/in-use");
    assert_eq!(reason(&mut source, now), Ok(None));
    std::os::unix::fs::symlink("/nowhere", &path).unwrap();
    assert_eq!(reason(&mut source, now), stands);
}

#[test]
fn a_signal_keeps_the_time_of_its_beginning_and_the_first_counts() {
    let host = TestHost::new("signal-since");
    let files = ["first", "second"].map(|name| host.join(name));
    let settings = Settings {
        files: files.to_vec(),
        ..Settings::default()
    };
    let mut signals = Signals::new(settings.sources(Path::new("/nowhere")));
    let start = Instant::now();
    let standing = |signals: &Signals| {
        let signal = signals.standing()?;
        let name = signal.reason.rsplit('/').next()?.to_owned();
        Some((name, signal.since?.to_string()))
    };
    let is = |name: &str, since: &str| Some((name.to_owned(), since.to_owned()));
    signals.read(after(start, 0));
    assert_eq!(standing(&signals), None);
    host.write("second", "");
    for seconds in [1, 2, 60] {
        signals.read(after(start, seconds));
        assert_eq!(standing(&signals), is("second", "2026-11-27T09:00:01Z"));
    }
    host.write("first", "");
    signals.read(after(start, 61));
    assert_eq!(standing(&signals), is("first", "2026-11-27T09:01:01Z"));
    host.remove("first");
    host.remove("second");
    signals.read(after(start, 62));
    assert_eq!(standing(&signals), None);
}

/// Waits for a reading, and reads. Returns how long that took.
async fn next_reading(signals: &mut Signals) -> Duration {
    let began = Instant::now();
    signals.due().await;
    signals.read(after(Instant::now(), 0));
    began.elapsed()
}

#[tokio::test]
async fn a_change_of_a_file_is_read_at_once_also_where_its_directory_is_missing_or_replaced()
 {
    let host = TestHost::new("at-once");
    let settings = Settings {
        files: vec![host.join("run/desk/in-use")],
        ..Settings::default()
    };
    let mut signals = Signals::new(settings.sources(Path::new("/nowhere")));
    signals.watch();
    next_reading(&mut signals).await;
    let mut readings = Vec::new();
    for _ in 0..3 {
        fs::create_dir_all(host.join("run/desk")).unwrap();
        readings.push(next_reading(&mut signals).await);
        assert_eq!(signals.standing(), None);
        host.write("run/desk/in-use", "");
        readings.push(next_reading(&mut signals).await);
        assert!(signals.standing().is_some());
        fs::remove_dir_all(host.join("run")).unwrap();
        // It goes entry by entry, each of which may lead to a reading.
        while signals.standing().is_some() {
            readings.push(next_reading(&mut signals).await);
        }
    }
    // None of them waited until it was time to read anyway.
    assert!(readings.iter().all(|took| *took < SELDOM), "{readings:?}");
    let fastest = readings.iter().min().unwrap();
    assert!(*fastest < Duration::from_millis(100), "{readings:?}");
}

#[tokio::test]
async fn many_changes_lead_to_few_readings() {
    let host = TestHost::new("many-changes");
    let settings = Settings {
        files: vec![host.join("in-use")],
        ..Settings::default()
    };
    let mut signals = Signals::new(settings.sources(Path::new("/nowhere")));
    signals.watch();
    next_reading(&mut signals).await;
    for _ in 0..10 {
        for number in 0..100 {
            host.write(&format!("other-{number}"), "");
        }
        assert!(next_reading(&mut signals).await < SELDOM);
        host.write("another", "");
        let earliest = signals.earliest;
        signals.due().await;
        assert!(Instant::now() >= earliest);
    }
}

#[tokio::test]
async fn the_end_that_a_request_names_is_read_when_it_comes() {
    let (host, _) = switch("end");
    let switch = OwnerSwitch::new(host.to_path_buf());
    let start = Instant::now();
    let until = after(start, 2).time;
    switch.reclaim(Some(until)).unwrap();
    let mut signals = Signals::new(vec![Box::new(switch)]);
    signals.watch();
    signals.read(after(start, 0));
    assert_eq!(signals.next, start + Duration::from_secs(2));
    signals.read(after(start, 2));
    assert_eq!(signals.standing(), None);
    assert_eq!(signals.next, start + Duration::from_secs(2) + SELDOM);
}

#[test]
fn equal_settings_keep_what_was_read_and_others_replace_it() {
    let host = TestHost::new("signal-configure");
    host.write("file", "");
    let settings = Settings {
        files: vec![host.join("file")],
        ..Settings::default()
    };
    let mut signals = Signals::new(Vec::new());
    let now = after(Instant::now(), 0);
    let configure = |signals: &mut Signals, settings: &Settings| {
        signals.configure(settings, Path::new("/nowhere"));
    };
    configure(&mut signals, &settings);
    signals.read(now);
    configure(&mut signals, &settings);
    assert!(signals.standing().is_some());
    configure(&mut signals, &Settings::default());
    assert!(signals.standing().is_none());
}

/// A source that cannot be read.
#[derive(Debug)]
struct Broken;

impl Source for Broken {
    fn name(&self) -> String {
        "broken".to_owned()
    }

    fn read(&mut self, _: Now) -> std::io::Result<Option<Signal>> {
        Err(std::io::Error::other("no such thing here"))
    }
}

#[test]
fn what_cannot_be_read_is_no_signal_and_says_why() {
    let mut signals = Signals::new(vec![Box::new(Broken)]);
    signals.read(after(Instant::now(), 0));
    assert!(signals.standing().is_none());
    let readings: Vec<_> = signals.readings().collect();
    let why = Reading::Unreadable {
        why: "no such thing here".to_owned(),
    };
    assert_eq!(readings, [("broken".to_owned(), &why)]);
}

/// As logind of systemd 252 writes it, without what identifies a person.
const DESKTOP: &str = "\
# This is private data. Do not parse.
UID=1000
USER=jo
ACTIVE=1
IS_DISPLAY=1
STATE=active
REMOTE=0
TYPE=wayland
ORIGINAL_TYPE=wayland
CLASS=user
SCOPE=session-2.scope
FIFO=/run/systemd/sessions/2.ref
SEAT=seat0
TTY=tty2
SERVICE=gdm-password
DESKTOP=gnome
VTNR=2
LEADER=1812
AUDIT=2
REALTIME=1795770000000000
MONOTONIC=48123456
CONTROLLER=:1.31
";

#[test]
fn sessions_of_persons_in_the_foreground_count() {
    let host = TestHost::new("signal-sessions");
    fs::create_dir_all(host.join("sessions")).unwrap();
    let now = after(Instant::now(), 0);
    let read = |counted| reason(&mut Sessions::new(&host, counted), now);
    let rows = [
        ("a desktop", DESKTOP.to_owned(), true, true),
        (
            "behind the greeter, or another user's",
            DESKTOP
                .replace("ACTIVE=1", "ACTIVE=0")
                .replace("STATE=active", "STATE=online"),
            false,
            false,
        ),
        (
            "about to end",
            DESKTOP.replace("STATE=active", "STATE=closing"),
            false,
            false,
        ),
        (
            "the greeter itself",
            DESKTOP.replace("CLASS=user", "CLASS=greeter"),
            false,
            false,
        ),
        (
            "the manager of a user",
            DESKTOP.replace("CLASS=user", "CLASS=manager"),
            false,
            false,
        ),
        (
            "a light session, since systemd 257",
            DESKTOP.replace("CLASS=user", "CLASS=user-light"),
            true,
            true,
        ),
        (
            "by SSH",
            DESKTOP
                .replace("REMOTE=0", "REMOTE=1")
                .replace("SEAT=seat0\n", "REMOTE_HOST=192.0.2.7\n"),
            false,
            true,
        ),
        (
            "without the key REMOTE",
            DESKTOP.replace("REMOTE=0\n", ""),
            false,
            true,
        ),
        (
            "of another format",
            "[Session]\nActive yes\n".to_owned(),
            false,
            false,
        ),
        ("empty", String::new(), false, false),
        (
            "not text",
            "\u{0}\u{1}=\u{0}\n===\n".to_owned(),
            false,
            false,
        ),
    ];
    for (what, text, local, all) in rows {
        host.write("sessions/2", &text);
        let wanted = |counts: bool| {
            let one = || "login-session: 1 active session".to_owned();
            Ok(counts.then(one))
        };
        assert_eq!(read(Counted::Local), wanted(local), "{what}");
        assert_eq!(read(Counted::All), wanted(all), "{what}");
    }
}

#[test]
fn only_the_files_of_sessions_are_read_and_their_number_is_the_reason() {
    let host = TestHost::new("signal-many-sessions");
    for name in [
        "sessions/2",
        "sessions/c1",
        "sessions/2.ref",
        "sessions/.#3abc",
    ] {
        host.write(name, DESKTOP);
    }
    let now = after(Instant::now(), 0);
    let mut source = Sessions::new(&host, Counted::Local);
    let stands = Ok(Some("login-session: 2 active sessions".to_owned()));
    assert_eq!(reason(&mut source, now), stands);
}

#[test]
fn of_many_sessions_each_is_read_and_more_than_can_be_are_an_error() {
    let host = TestHost::new("signal-crowd-of-sessions");
    let ssh = DESKTOP.replace("REMOTE=0", "REMOTE=1");
    for number in 1..=256 {
        host.write(&format!("sessions/{number}"), &ssh);
        host.write(&format!("sessions/{number}.ref"), "");
    }
    let now = after(Instant::now(), 0);
    let mut source = Sessions::new(&host, Counted::All);
    let stands = Ok(Some("login-session: 256 active sessions".to_owned()));
    assert_eq!(reason(&mut source, now), stands);
    let mut source = Sessions::new(&host, Counted::Local);
    assert_eq!(reason(&mut source, now), Ok(None));
    host.write("sessions/257", &ssh);
    let directory = host.join("sessions").display().to_string();
    assert_eq!(
        reason(&mut source, now),
        Err(format!(
            "{directory} has more than 256 sessions, and a person may be at one that is not read"
        ))
    );
    // What is not read hides nobody.
    for number in 1..=257 {
        host.write(&format!("sessions/{number}"), DESKTOP);
    }
    let stands = Ok(Some("login-session: 256 active sessions".to_owned()));
    assert_eq!(reason(&mut source, now), stands);
    host.remove("sessions/257");
    host.write("sessions/1", &DESKTOP.repeat(100));
    let stands = Ok(Some("login-session: 255 active sessions".to_owned()));
    assert_eq!(reason(&mut source, now), stands);
}

#[test]
fn sessions_that_cannot_be_read_are_no_signal() {
    let host = TestHost::new("signal-no-sessions");
    let now = after(Instant::now(), 0);
    let mut source = Sessions::new(&host, Counted::Local);
    let directory = host.join("sessions").display().to_string();
    assert_eq!(
        reason(&mut source, now),
        Err(format!(
            "{directory}: No such file or directory (os error 2)"
        ))
    );
    host.write("sessions/2", &DESKTOP.repeat(100));
    assert_eq!(
        reason(&mut source, now),
        Err("session 2: has more than 16384 bytes".to_owned())
    );
    host.remove("sessions/2");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        host.join("sessions/2"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert_eq!(
        reason(&mut source, now),
        Err("session 2: is not a regular file".to_owned())
    );
}

/// A host whose processor is used in tenths of a second.
struct Processor {
    host: TestHost,
    load: Load,
    start: Instant,
    group: &'static str,
}

impl Processor {
    fn new(name: &str, group: &'static str) -> Self {
        let host = TestHost::new(&format!("signal-{name}"));
        let limit = LoadLimit {
            above: 1.5,
            time: Length::minutes(1),
        };
        let load = Load::new(limit, &host, &host.join("cgroup"));
        Self {
            host,
            load,
            start: Instant::now(),
            group,
        }
    }

    /// Reads after so many seconds, when the host and its pods have used so much since boot.
    fn read(
        &mut self,
        seconds: u64,
        whole: u64,
        pods: u64,
    ) -> Result<Option<String>, String> {
        // Half in user mode, half in the kernel; a tick is a hundredth.
        let stat = format!(
            "cpu  {} 0 {} 99999 99999 0 0 99999 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
            whole * 50,
            whole * 50
        );
        self.host.write("stat", &stat);
        let text = if self.group.ends_with("cpu.stat") {
            format!("usage_usec {}\nuser_usec 0\n", pods * 1_000_000)
        } else {
            format!("{}\n", pods * 1_000_000_000)
        };
        self.host.write(&format!("cgroup/{}", self.group), &text);
        reason(&mut self.load, after(self.start, seconds))
    }
}

const GROUP: &str = "kubepods.slice/cpu.stat";

/// What stands above the limit.
const ABOVE: &str = "load: above 1.5 for 1m";

/// What is read before the time of the limit has passed.
fn unknown() -> Result<Option<String>, String> {
    Err(std::io::ErrorKind::WouldBlock.to_string())
}

#[test]
fn load_is_what_programs_outside_pods_use_over_the_whole_time() {
    let groups = [
        GROUP,
        "kubepods/cpu.stat",
        "cpu,cpuacct/kubepods.slice/cpuacct.usage",
        "cpuacct/kubepods/cpuacct.usage",
    ];
    for (number, group) in groups.into_iter().enumerate() {
        let mut processor = Processor::new(&format!("load-{number}"), group);
        // Two processors' worth outside pods, and ten by pods.
        for seconds in 0..60 {
            let read = processor.read(seconds, 12 * seconds, 10 * seconds);
            assert_eq!(read, unknown(), "{group} {seconds}");
        }
        assert_eq!(
            processor.read(60, 720, 600),
            Ok(Some(ABOVE.to_owned())),
            "{group}"
        );
        // From 70 s on by pods alone.
        assert_eq!(
            processor.read(70, 840, 700),
            Ok(Some(ABOVE.to_owned())),
            "{group}"
        );
        assert_eq!(processor.read(90, 1100, 960), Ok(None), "{group}");
    }
}

#[test]
fn a_short_burst_and_the_work_of_pods_are_no_load() {
    let mut processor = Processor::new("burst", GROUP);
    let mut whole = 0;
    for seconds in 0..600 {
        // Six processors for ten seconds of every minute.
        whole += if seconds % 60 < 10 { 6 } else { 0 };
        let read = processor.read(seconds, whole + 64 * seconds, 64 * seconds);
        let wanted = if seconds < 60 { unknown() } else { Ok(None) };
        assert_eq!(read, wanted, "{seconds}");
    }
}

#[test]
fn a_counter_that_begins_anew_is_not_taken_for_use_of_the_host() {
    let mut processor = Processor::new("anew", GROUP);
    for seconds in 0..60 {
        let read = processor.read(seconds, 10 * seconds, 10 * seconds);
        assert_eq!(read, unknown());
    }
    assert_eq!(processor.read(60, 600, 600), Ok(None));
    // The kubelet has made its control group again.
    for seconds in 61..=120 {
        let pods = 10 * (seconds - 61);
        let read = processor.read(seconds, 10 * seconds, pods);
        assert_eq!(read, unknown(), "{seconds}");
    }
    let pods = 10 * (130 - 61);
    assert_eq!(processor.read(130, 1300, pods), Ok(None));
}

#[test]
fn load_without_the_control_group_of_pods_is_not_known() {
    let host = TestHost::new("signal-no-groups");
    host.write("stat", "cpu  100 0 100 0 0 0 0 0 0 0\n");
    let limit = LoadLimit {
        above: 0.1,
        time: Length::seconds(10),
    };
    let mut load = Load::new(limit, &host, &host.join("cgroup"));
    let now = after(Instant::now(), 0);
    let why = reason(&mut load, now).unwrap_err();
    let groups = host.join("cgroup").display().to_string();
    assert_eq!(
        why,
        format!(
            "{groups} has no control group of pods: what they use cannot be subtracted"
        )
    );
    host.write("cgroup/kubepods/cpu.stat", "nr_periods 0\n");
    let why = reason(&mut load, now).unwrap_err();
    assert!(why.ends_with("kubepods/cpu.stat: has no usage"), "{why}");
    for stat in [
        "",
        "cpu\n",
        "cpu  1 2 3\n",
        "cpu  18446744073709551615 1 1 1 1 1 1\n",
    ] {
        host.write("stat", stat);
        let why = reason(&mut load, now).unwrap_err();
        assert!(why.ends_with("stat: has no line `cpu`"), "{stat:?}: {why}");
    }
}

#[test]
fn load_of_a_host_without_pods_is_all_that_it_uses() {
    // Nothing of pods is there.
    let mut processor = Processor::new("alone", "other/cpu.stat");
    let host_root = || ["cgroup.controllers", "other/cgroup.events"];
    for file in host_root() {
        processor.host.write(&format!("cgroup/{file}"), "");
    }
    for seconds in 0..60 {
        assert_eq!(processor.read(seconds, seconds, 0), unknown(), "{seconds}");
    }
    assert_eq!(processor.read(60, 60, 0), Ok(None));
    assert_eq!(processor.read(70, 160, 0), Ok(Some(ABOVE.to_owned())));
    // Its Node joins a cluster: what pods use is not load.
    processor.group = GROUP;
    for seconds in 71..=200 {
        let pods = 64 * (seconds - 70);
        let read = processor.read(seconds, 160 + pods, pods);
        let stands = (seconds < 127).then(|| ABOVE.to_owned());
        assert_eq!(read, Ok(stands), "{seconds}");
    }
}

#[test]
fn a_host_is_not_free_of_load_before_it_was_watched_for_the_whole_time() {
    let mut processor = Processor::new("warm", GROUP);
    let mut signals = Signals::new(vec![Box::new(processor.load.clone())]);
    let mut read = |processor: &mut Processor, seconds: u64, pods: u64| {
        let _ = processor.read(seconds, 20 * seconds, pods);
        signals.read(after(processor.start, seconds));
        let (_, reading) = signals.readings().next().unwrap();
        (reading.clone(), *signals.are_absent().borrow())
    };
    for seconds in 0..60 {
        let found = read(&mut processor, seconds, 20 * seconds);
        assert_eq!(found, (Reading::NotYet, false), "{seconds}");
    }
    let found = read(&mut processor, 60, 1200);
    assert_eq!(found, (Reading::Absent, true));
    // The machine has left, and the owner works: the group of pods is another one.
    for seconds in 61..121 {
        let found = read(&mut processor, seconds, 0);
        assert_eq!(found, (Reading::NotYet, false), "{seconds}");
    }
    let (reading, is_free) = read(&mut processor, 121, 0);
    assert!(matches!(reading, Reading::Stands(_)), "{reading:?}");
    assert!(!is_free);
    // It is made anew once more: what stood may have ended.
    assert_eq!(read(&mut processor, 126, 1).0, reading);
    let found = read(&mut processor, 127, 0);
    assert_eq!(found, (Reading::NotYet, false));
}

#[test]
fn load_says_that_it_is_not_known_yet() {
    let mut processor = Processor::new("note", GROUP);
    let _ = processor.read(0, 0, 0);
    let note = "not known before 1m of readings";
    assert_eq!(processor.load.note().as_deref(), Some(note));
    let _ = processor.read(60, 0, 0);
    assert_eq!(processor.load.note(), None);
}

#[test]
fn load_is_not_known_where_pods_may_be_out_of_sight() {
    let unknown = |name: &str, files: &[&str]| {
        let mut processor = Processor::new(name, "other/cpu.stat");
        for file in files {
            processor.host.write(&format!("cgroup/{file}"), "");
        }
        let why = processor.read(0, 0, 0).unwrap_err();
        assert!(why.contains("has no control group of pods"), "{why}");
    };
    // In a control group namespace of its own.
    unknown("namespace", &["cgroup.controllers", "cgroup.events"]);
    unknown("version-1", &["cpu/cpu.shares"]);
    let below = "kubelet/kubepods.slice/cpu.stat";
    unknown("below", &["cgroup.controllers", below]);
}

/// A directory of the owner's switch in which each file belongs to the user who runs this test.
fn switch(name: &str) -> (TestHost, u32) {
    let host = TestHost::new(&format!("signal-{name}"));
    let uid = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&*host).unwrap());
    (host, uid)
}

#[test]
fn the_switch_stands_until_the_instant_in_its_file_or_until_it_is_taken_back() {
    let (host, uid) = switch("switch");
    let mut switch = OwnerSwitch::new(host.to_path_buf());
    let start = Instant::now();
    assert_eq!(reason(&mut switch, after(start, 0)), Ok(None));
    switch
        .reclaim(Some("2026-11-27T09:01:00Z".parse().unwrap()))
        .unwrap();
    let stands = Ok(Some("owner: until 2026-11-27T09:01:00Z".to_owned()));
    assert_eq!(reason(&mut switch, after(start, 59)), stands);
    assert_eq!(reason(&mut switch, after(start, 60)), Ok(None));
    switch.reclaim(None).unwrap();
    let stands = Ok(Some("owner: until it is taken back".to_owned()));
    assert_eq!(reason(&mut switch, after(start, 1_000_000)), stands);
    assert_eq!(switch.take_back().unwrap(), 1);
    assert_eq!(switch.take_back().unwrap(), 0);
    assert_eq!(reason(&mut switch, after(start, 0)), Ok(None));
    // As a shell writes it.
    let file = format!("reclaim-{uid}");
    host.write(&file, "2026-11-27T10:01:00+01:00");
    let signal = switch.read(after(start, 0)).unwrap().unwrap();
    assert_eq!(signal.until, Some("2026-11-27T09:01:00Z".parse().unwrap()));
    assert!(signal.since.is_some());
    let names: Vec<_> = fs::read_dir(&*host).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing else is left behind");
}

#[test]
fn what_is_no_file_of_a_user_is_no_wish_of_the_owner() {
    let (host, uid) = switch("no-switch");
    let mut switch = OwnerSwitch::new(host.join("missing"));
    let now = after(Instant::now(), 0);
    assert_eq!(reason(&mut switch, now), Ok(None));
    assert_eq!(switch.take_back().unwrap(), 0);
    let mut switch = OwnerSwitch::new(host.to_path_buf());
    for name in ["reclaim", "reclaim-", "reclaim-jo", "reclaim--1", ".new-7"] {
        host.write(name, "");
    }
    // Files that belong to somebody else than the user of their name.
    host.write(&format!("reclaim-{}", uid + 1), "");
    assert_eq!(reason(&mut switch, now), Ok(None));
    let file = format!("reclaim-{uid}");
    let refused = |switch: &mut OwnerSwitch| reason(switch, now).unwrap_err();
    for text in ["tomorrow", "2026-11-27", "\u{0}", "-1"] {
        host.write(&file, text);
        assert_eq!(
            refused(&mut switch),
            format!("{file}: must be empty, or a time such as 2026-03-08T07:00:00Z"),
            "{text:?}"
        );
    }
    host.write(&file, &"9".repeat(100));
    assert_eq!(
        refused(&mut switch),
        format!("{file}: has more than 64 bytes")
    );
    host.remove(&file);
    host.write("elsewhere", "");
    std::os::unix::fs::symlink("elsewhere", host.join(&file)).unwrap();
    assert!(refused(&mut switch).starts_with(&format!("{file}: ")));
    host.remove(&file);
    fs::create_dir(host.join(&file)).unwrap();
    assert_eq!(
        refused(&mut switch),
        format!("{file}: is not a regular file")
    );
}

#[test]
fn more_entries_than_are_read_are_an_error_and_hide_no_request_that_was_read() {
    let (host, uid) = switch("crowd");
    let mut switch = OwnerSwitch::new(host.to_path_buf());
    let now = after(Instant::now(), 0);
    for number in 0..4096 {
        host.write(&format!("other-{number}"), "");
    }
    assert_eq!(reason(&mut switch, now), Ok(None));
    host.write("other-4096", "");
    let why = reason(&mut switch, now).unwrap_err();
    assert!(why.contains("has more than 4096 entries"), "{why}");
    assert!(switch.take_back().is_err());
    // Which entries are read depends on the file system: one of two requests at most is not.
    for number in 0..=4096 {
        host.remove(&format!("other-{number}"));
    }
    host.write(&format!("reclaim-{uid}"), "");
    for number in 0..4096 {
        host.write(&format!("other-{number}"), "");
    }
    match reason(&mut switch, now) {
        Ok(found) => assert!(found.is_some(), "the request was read"),
        Err(why) => assert!(why.contains("a request may be among those"), "{why}"),
    }
}

/// A host with processes that use graphics cards.
struct Cards {
    host: TestHost,
    graphics: Graphics,
    start: Instant,
}

/// What a desktop runs in, and what pods run in.
const SESSION: &str = "0::/user.slice/user-1000.slice/session-2.scope";
const POD: &str = "0::/kubepods.slice/kubepods-pod8a4b2c6e_1f0d_4b5a.slice/x.scope";

impl Cards {
    fn new(name: &str) -> Self {
        let host = TestHost::new(&format!("graphics-{name}"));
        host.write("1/cgroup", "0::/init.scope\n");
        Self {
            graphics: Graphics::new(0.3, &host),
            host,
            start: Instant::now(),
        }
    }

    /// A process has this open, in a control group.
    fn opens(&self, pid: u32, file: u32, target: &str, group: &str) {
        self.host
            .write(&format!("{pid}/cgroup"), &format!("{group}\n"));
        let stat = "7 (x) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n";
        self.host.write(&format!("{pid}/stat"), stat);
        let files = self.host.join(format!("{pid}/fd"));
        fs::create_dir_all(&files).unwrap();
        std::os::unix::fs::symlink(target, files.join(file.to_string())).unwrap();
    }

    /// What the driver says about a file.
    fn says(&self, pid: u32, file: u32, text: &str) {
        self.host.write(&format!("{pid}/fdinfo/{file}"), text);
    }

    /// A client of a card has used so many seconds of its engine.
    fn used(&self, (pid, number): (u32, u32), seconds: f64) {
        let text = format!(
            "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t{number}\n\
             drm-pdev:\t0000:06:00.0\ndrm-engine-gfx:\t{:.0} ns\ndrm-engine-dec:\t5 ns\n\
             drm-engine-capacity-gfx:\t99999999999\n",
            seconds * 1e9
        );
        self.says(pid, 9, &text);
    }

    /// Reads once a second from one instant to another; the last reading.
    fn read(
        &mut self,
        seconds: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<String>, String> {
        let last = seconds.map(|at| reason(&mut self.graphics, after(self.start, at)));
        last.last().unwrap()
    }
}

const RENDER: &str = "/dev/dri/renderD128";
/// What stands above the limit.
const USED: &str = "graphics: above 0.3 of an engine";

#[test]
fn a_graphics_card_is_used_when_an_engine_works_for_programs_outside_pods() {
    let mut cards = Cards::new("used");
    cards.opens(50, 9, RENDER, SESSION);
    cards.opens(51, 9, "/dev/dri/card0", SESSION);
    cards.used((50, 1), 1000.0);
    cards.used((51, 2), 500.0);
    // One reading says nothing about a difference.
    assert!(cards.read(0..=14).is_err());
    // A compositor and a browser, 4 of 15 seconds together.
    cards.used((50, 1), 1003.0);
    cards.used((51, 2), 501.0);
    assert_eq!(cards.read(15..=29), Ok(None));
    // A game has begun.
    cards.used((51, 2), 506.0);
    assert_eq!(cards.read(30..=44), Ok(Some(USED.to_owned())));
    // It has ended, and its number is another one's.
    cards.used((51, 3), 900.0);
    assert_eq!(cards.read(45..=59), Ok(None));
    assert_eq!(
        cards.graphics.note().unwrap(),
        "2 clients of graphics drivers count"
    );
}

#[test]
fn what_pods_do_on_a_graphics_card_is_no_signal() {
    let mut cards = Cards::new("pods");
    for group in [POD, "0:/"] {
        let pid = if group == POD { 60 } else { 61 };
        cards.opens(pid, 9, RENDER, group);
        cards.opens(pid, 10, "/dev/kfd", group);
        cards.used((pid, pid), 0.0);
    }
    assert!(cards.read(0..=0).is_err());
    for pid in [60, 61] {
        cards.used((pid, pid), 15.0);
    }
    assert_eq!(cards.read(15..=15), Ok(None));
}

#[test]
fn a_client_that_two_processes_have_open_counts_once() {
    let mut cards = Cards::new("shared");
    for pid in [50, 51] {
        cards.opens(pid, 9, RENDER, SESSION);
        cards.used((pid, 1), 0.0);
    }
    assert!(cards.read(0..=0).is_err());
    for pid in [50, 51] {
        cards.used((pid, 1), 4.0);
    }
    assert_eq!(cards.read(15..=15), Ok(None));
}

#[test]
fn cycles_of_an_engine_count_where_a_driver_tells_no_time() {
    let mut cards = Cards::new("cycles");
    cards.opens(50, 9, RENDER, SESSION);
    let says = |cards: &Cards, busy: u64, all: u64| {
        let text = format!(
            "drm-driver: xe\ndrm-client-id: 7\ndrm-cycles-rcs: {busy}\n\
             drm-total-cycles-rcs: {all}\ndrm-cycles-bcs: 12\n"
        );
        cards.says(50, 9, &text);
    };
    says(&cards, 1000, 50_000);
    assert!(cards.read(0..=0).is_err());
    says(&cards, 1200, 51_000);
    assert_eq!(cards.read(15..=15), Ok(None));
    says(&cards, 1600, 52_000);
    assert_eq!(cards.read(30..=30), Ok(Some(USED.to_owned())));
}

#[test]
fn an_open_device_for_computing_is_a_signal_and_that_of_a_display_is_not() {
    let mut cards = Cards::new("computing");
    cards.opens(50, 9, "/dev/nvidia0", SESSION);
    cards.opens(50, 10, "/dev/nvidiactl", SESSION);
    cards.opens(50, 11, "/dev/nvidia-modeset", SESSION);
    assert!(cards.read(0..=0).is_err());
    assert_eq!(cards.read(15..=15), Ok(None));
    for (pid, device) in [(51, "/dev/nvidia-uvm"), (52, "/dev/kfd")] {
        cards.opens(pid, 5, device, SESSION);
        let at = u64::from(pid) * 15;
        let stands = Ok(Some(format!("graphics: {device} is open")));
        assert_eq!(cards.read(at..=at), stands);
        cards.host.remove(&format!("{pid}/fd/5"));
    }
    assert_eq!(cards.read(900..=900), Ok(None));
}

#[test]
fn what_a_driver_does_not_say_is_no_signal() {
    let mut cards = Cards::new("silent");
    for (pid, text) in [
        (50, ""),
        (51, "drm-driver: x\n"),
        (
            52,
            "drm-driver: x\ndrm-client-id: many\ndrm-engine-a: 5 ns\n",
        ),
        (53, "drm-client-id: 5\ndrm-engine-a: 5 ns\n"),
        (
            54,
            "drm-driver: x\ndrm-client-id: 5\ndrm-engine-a: much\ndrm-engine-b: 7 s\n",
        ),
    ] {
        cards.opens(pid, 9, RENDER, SESSION);
        cards.says(pid, 9, text);
    }
    // What it says is gone.
    cards.opens(55, 9, RENDER, SESSION);
    assert!(cards.read(0..=0).is_err());
    assert_eq!(cards.read(15..=15), Ok(None));
    let none = "no graphics driver says what its clients use";
    assert_eq!(cards.graphics.note().unwrap(), none);
}

#[test]
fn graphics_without_processes_to_read_are_not_known() {
    let mut nowhere = Graphics::new(0.3, Path::new("/nowhere"));
    let why = "No such file or directory (os error 2)";
    let read = reason(&mut nowhere, after(Instant::now(), 0));
    assert_eq!(read, Err(why.to_owned()));
}

#[test]
fn many_open_files_are_looked_at_a_part_at_a_time() {
    let mut cards = Cards::new("parts");
    for pid in [100, 101] {
        cards.opens(pid, 0, "/dev/null", SESSION);
        for file in 1..1000 {
            let link = cards.host.join(format!("{pid}/fd/{file}"));
            std::os::unix::fs::symlink("/dev/null", link).unwrap();
        }
    }
    cards.opens(200, 9, RENDER, SESSION);
    cards.used((200, 1), 0.0);
    assert!(cards.read(0..=0).is_err());
    cards.used((200, 1), 15.0);
    // A thousand files a second.
    assert!(cards.read(15..=15).is_err(), "the round has only begun");
    assert_eq!(cards.read(16..=17), Ok(Some(USED.to_owned())));
}
