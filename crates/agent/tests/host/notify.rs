//! Tests what a user of the host is told before it is lent, with a played desktop.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fivespot_agent::bus::{Message, Value};
use fivespot_agent::notify::Desktop;
use fivespot_agent::proc::Proc;
use fivespot_agent::run_directory::RunDirectory;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kubemu_apiserver::Patch;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::bus::{PlayedBus, daemon};
use crate::program::{Program, unique};
use crate::reporting::{Desk, MACHINE, now};

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
const NEVER: Duration = Duration::from_hours(1);
/// Nobody: a bus looks its user up.
const OWNER: u32 = 65_534;
const AGENT: u32 = 40;

type Answer = Option<(&'static str, Vec<Value>)>;

/// A desktop that shows notifications with buttons; the number of each is 7.
fn shows(call: &Message) -> (&'static str, Vec<Value>) {
    match call.member.as_str() {
        "GetCapabilities" => {
            let all = ["body", "actions"].map(Value::text).to_vec();
            ("as", vec![Value::List(all)])
        }
        "Notify" => {
            assert_eq!(call.signature, "susssasa{sv}i");
            ("u", vec![Value::Number(7)])
        }
        "CloseNotification" => ("", vec![]),
        other => panic!("a desktop is not asked for {other}"),
    }
}

/// A user at a desktop of a host whose agent is told when it is lent.
struct Evening {
    desk: Desk,
    proc: Proc,
    path: PathBuf,
    watching: Option<JoinHandle<std::io::Error>>,
}

impl Drop for Evening {
    fn drop(&mut self) {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
        let _ = fs::remove_file(&self.path);
    }
}

impl Evening {
    /// At noon, without a bus.
    async fn begin() -> Self {
        let mut desk = Desk::new().await;
        // The user does not have the agent's view of it.
        let proc = desk.fixture.fake.proc();
        desk.fixture.fake.start(AGENT, "agent");
        desk.fixture.fake.is_agent(AGENT);
        desk.fixture.start_agent();
        Self {
            desk,
            proc,
            path: std::env::temp_dir().join(unique("5spot-session-bus-")),
            watching: None,
        }
    }

    fn with_bus(
        &mut self,
        service: impl FnMut(&Message) -> Answer + Send + 'static,
    ) -> PlayedBus {
        PlayedBus::at(self.path.clone(), service)
    }

    /// The machine is created next at this time of the day.
    async fn opens(&self, time: &str) {
        let at = format!("2026-03-06T{time}Z");
        let status = json!({"status": {"nextActivation": at}});
        let client = self.desk.fixture.client();
        let path = format!("{MACHINE}/status");
        client.patch(&path, Patch::Merge(status)).await.unwrap();
    }

    fn directory(&self) -> RunDirectory {
        RunDirectory::new(self.desk.fixture.run_directory.clone().unwrap())
    }

    /// Begins to watch, with ten minutes.
    fn watches(&mut self) {
        let desktop = Desktop {
            bus: self.path.clone(),
            directory: self.directory(),
            proc: self.proc.clone(),
            before: SignedDuration::from_mins(10),
            zone: TimeZone::UTC,
            now,
        };
        self.watching = Some(tokio::spawn(async move {
            let Err(error) = desktop.watch().await;
            error
        }));
    }

    /// What the user has asked for; empty without an end.
    fn asked(&self) -> Option<String> {
        let root = self.desk.fixture.run_directory.as_ref()?;
        let uid = fs::metadata(root).ok()?.uid();
        let file = root.join(format!("owner/reclaim-{uid}"));
        fs::read_to_string(file)
            .ok()
            .map(|text| text.trim().to_owned())
    }
}

/// Waits for the first call of a member.
async fn called(bus: &PlayedBus, member: &str) -> Message {
    let called = async {
        loop {
            if let Some(call) = bus.last(member) {
                break call;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    let called = timeout(NEVER, called).await;
    called.unwrap_or_else(|_| panic!("no {member}"))
}

fn emit(bus: &PlayedBus, id: u64, member: &str, what: Value) {
    let signature = if member == "ActionInvoked" {
        "us"
    } else {
        "uu"
    };
    let body = vec![Value::Number(id), what];
    bus.emit(PATH, NAME, member, (signature, body));
}

fn at(time: &str) -> Timestamp {
    format!("2026-03-06T{time}Z").parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_user_is_told_ten_minutes_before_the_host_is_lent_and_once() {
    let mut evening = Evening::begin().await;
    let bus = evening.with_bus(|call| Some(shows(call)));
    evening.opens("12:30:00").await;
    evening.watches();
    let call = called(&bus, "Notify").await;
    assert!(
        (at("12:20:00")..at("12:20:15")).contains(&now()),
        "{}",
        now()
    );
    let [
        _,
        Value::Number(0),
        _,
        summary,
        body,
        buttons,
        hints,
        Value::Number(0),
    ] = &call.body[..]
    else {
        panic!("{call:?}");
    };
    assert_eq!(summary.as_text(), Some("This computer is lent at 12:30"));
    let words = "A cluster uses it. \"Not today\" keeps it for you until Sat 08:00.";
    assert_eq!(body.as_text(), Some(words));
    let texts: Vec<_> = buttons.elements().iter().map(Value::as_text).collect();
    let wanted = ["not-tonight", "Not today", "in-an-hour", "In an hour"];
    assert_eq!(texts, wanted.map(Some));
    assert_eq!(hints.of("urgency"), Some(&Value::Number(1)));
    // Signals of others, of other notifications, and in another form.
    emit(&bus, 8, "ActionInvoked", Value::text("in-an-hour"));
    bus.emit(PATH, "a.b", "ActionInvoked", ("u", vec![Value::Number(7)]));
    sleep(Duration::from_mins(5)).await;
    // The operator writes its status again.
    evening.opens("12:30:01").await;
    evening.opens("12:30:00").await;
    assert_eq!(bus.calls("CloseNotification"), 0);
    let call = called(&bus, "CloseNotification").await;
    assert_eq!(call.body, [Value::Number(7)]);
    assert!(
        (at("12:30:00")..at("12:30:15")).contains(&now()),
        "{}",
        now()
    );
    sleep(Duration::from_mins(5)).await;
    assert_eq!((bus.calls("Notify"), evening.asked()), (1, None));
    // The next one.
    evening.opens("13:30:00").await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(bus.calls("Notify"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_asks_for_the_host_and_the_agent_sees_it() {
    let morning: Timestamp = "2026-03-07T08:00:00Z".parse().unwrap();
    for (key, opens, until) in [
        ("not-tonight", "12:30:00", Some(morning)),
        ("in-an-hour", "13:30:00", Some(at("14:20:00"))),
        ("default", "14:30:00", None),
    ] {
        let mut evening = Evening::begin().await;
        let bus = evening.with_bus(|call| Some(shows(call)));
        evening.opens(opens).await;
        evening.watches();
        called(&bus, "Notify").await;
        emit(&bus, 7, "ActionInvoked", Value::text(key));
        emit(&bus, 7, "NotificationClosed", Value::Number(2));
        sleep(Duration::from_mins(1)).await;
        let asked = evening
            .asked()
            .map(|text| text.parse::<Timestamp>().unwrap());
        assert_eq!(asked.is_some(), until.is_some(), "{key}");
        for (asked, until) in asked.iter().zip(until) {
            let late = asked.duration_since(until);
            assert!((0..15).contains(&late.as_secs()), "{key}: {asked}");
        }
        let root = evening.desk.fixture.run_directory.clone().unwrap();
        let state = fs::read_to_string(root.join("agent/state.json")).unwrap();
        assert_eq!(state.contains("owner: until "), until.is_some(), "{state}");
        sleep(Duration::from_mins(20)).await;
        assert_eq!(bus.calls("Notify"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_whose_host_could_not_be_asked_for_is_told_why() {
    let mut evening = Evening::begin().await;
    let bus = evening.with_bus(|call| Some(shows(call)));
    evening.opens("12:30:00").await;
    evening.watches();
    called(&bus, "Notify").await;
    let root = evening.desk.fixture.run_directory.clone().unwrap();
    fs::remove_dir_all(root.join("owner")).unwrap();
    emit(&bus, 7, "ActionInvoked", Value::text("in-an-hour"));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bus.calls("Notify"), 2);
    let call = bus.last("Notify").unwrap();
    let summary = call.body[3].as_text().unwrap();
    assert_eq!(summary, "This computer could not be kept");
    let body = call.body[4].as_text().unwrap();
    assert!(body.contains("No such file or directory"), "{body}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_while_something_asks_for_the_host_beyond_the_opening() {
    let mut evening = Evening::begin().await;
    let bus = evening.with_bus(|call| Some(shows(call)));
    evening.opens("12:30:00").await;
    evening.watches();
    sleep(Duration::from_secs(30)).await;
    let switch = evening.directory().switch();
    switch.reclaim(Some(at("12:31:00"))).unwrap();
    sleep(Duration::from_mins(25)).await;
    assert_eq!(bus.calls("Notify"), 0);
    // It would end before.
    switch.reclaim(Some(at("12:29:00"))).unwrap();
    sleep(Duration::from_secs(30)).await;
    assert_eq!(bus.calls("Notify"), 1);
    switch.reclaim(None).unwrap();
    called(&bus, "CloseNotification").await;
    assert!(now() < at("12:27:00"), "{}", now());
}

#[tokio::test(start_paused = true)]
async fn a_desktop_without_buttons_is_given_the_command() {
    let mut evening = Evening::begin().await;
    let bus = evening.with_bus(|call| match call.member.as_str() {
        "GetCapabilities" => Some(("as", vec![Value::List(vec![])])),
        _ => Some(shows(call)),
    });
    evening.opens("12:30:00").await;
    evening.watches();
    let call = called(&bus, "Notify").await;
    let body = call.body[4].as_text().unwrap();
    assert!(
        body.ends_with("5spot-reclaim-agent reclaim --for 4h"),
        "{body}"
    );
    assert_eq!(call.body[5], Value::List(vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_shows_notifications_may_start_late_and_what_hangs_is_asked_seldom() {
    let mut evening = Evening::begin().await;
    evening.opens("12:10:00").await;
    let bus = evening.with_bus(|_| Some(("error", vec![])));
    evening.watches();
    sleep(Duration::from_mins(2)).await;
    assert!((5..20).contains(&bus.calls("GetCapabilities")));
    drop(bus);
    let bus = evening.with_bus(|_| None);
    sleep(Duration::from_mins(5)).await;
    let asked = bus.calls("GetCapabilities");
    assert!((5..20).contains(&asked), "{asked}");
    drop(bus);
    let bus = evening.with_bus(|call| Some(shows(call)));
    called(&bus, "Notify").await;
    assert!(now() < at("12:10:00"));
}

#[tokio::test(start_paused = true)]
async fn a_notification_that_may_be_on_the_screen_is_not_sent_again() {
    let mut evening = Evening::begin().await;
    evening.opens("12:10:00").await;
    let bus = evening.with_bus(|call| match call.member.as_str() {
        "Notify" => None,
        _ => Some(shows(call)),
    });
    evening.watches();
    sleep(Duration::from_mins(9)).await;
    assert_eq!(bus.calls("Notify"), 1);
    // Nor by a server that has ended with what it showed.
    drop(bus);
    let bus = evening.with_bus(|call| Some(shows(call)));
    sleep(Duration::from_mins(5)).await;
    assert_eq!(bus.calls("Notify"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_ends_or_never_answers_ends_the_program_within_two_minutes() {
    for is_hanging in [false, true] {
        let mut evening = Evening::begin().await;
        let listener = UnixListener::bind(&evening.path).unwrap();
        if !is_hanging {
            drop(listener);
            fs::remove_file(&evening.path).unwrap();
        }
        let began = Instant::now();
        evening.watches();
        let watching = evening.watching.take().unwrap();
        let error = timeout(NEVER, watching).await.unwrap().unwrap();
        let took = began.elapsed();
        assert!(took > Duration::from_mins(1), "{took:?}");
        assert!(took < Duration::from_mins(2), "{took:?}");
        let error = error.to_string();
        let wanted = if is_hanging {
            "does not answer"
        } else {
            "No such file"
        };
        assert!(error.contains(wanted), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_sends_nonsense_is_left_and_tried_again_with_growing_pauses() {
    let mut evening = Evening::begin().await;
    evening.opens("12:30:00").await;
    let listener = UnixListener::bind(&evening.path).unwrap();
    evening.watches();
    let mut connections = 0;
    let serving = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            connections += 1;
            let mut greeting = [0; 31];
            let _ = stream.read_exact(&mut greeting).await;
            let nonsense = [b"OK 0123\r\n".as_slice(), &[0xff; 4096]].concat();
            let _ = stream.write_all(&nonsense).await;
        }
    };
    let _ = timeout(Duration::from_mins(1), serving).await;
    assert!((3..8).contains(&connections), "{connections}");
    drop(listener);
    fs::remove_file(&evening.path).unwrap();
    let bus = evening.with_bus(|call| Some(shows(call)));
    called(&bus, "Notify").await;
}

#[test]
fn without_a_session_bus_the_program_says_so_and_ends() {
    for (address, why) in [
        (None, "DBUS_SESSION_BUS_ADDRESS is not set"),
        (Some("tcp:host=a"), "names no socket of this host"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_5spot-reclaim-agent"));
        command.arg("notify").env_remove("DBUS_SESSION_BUS_ADDRESS");
        command.envs(address.map(|address| ("DBUS_SESSION_BUS_ADDRESS", address)));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let printed = String::from_utf8(output.stderr).unwrap();
        let wanted = "error: finding the session bus: ";
        assert!(
            printed.starts_with(wanted) && printed.contains(why),
            "{printed}"
        );
    }
}

/// A process that ends with this.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What an agent would say that runs as this process.
fn state_of(opening: &str) -> serde_json::Value {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let started = fields.split_ascii_whitespace().nth(19).unwrap();
    json!({
        "pid": std::process::id(), "started": started.parse::<u64>().unwrap(),
        "node": "desk", "requested": null, "signals": [],
        "opening": {"at": opening, "until": null},
    })
}

#[test]
fn a_real_bus_accepts_the_program_of_a_user_who_is_not_root() {
    let program =
        Program::copy(env!("CARGO_BIN_EXE_5spot-reclaim-agent"), &unique("agent"));
    let directory = std::env::temp_dir().join(unique("5spot-agent-run-"));
    RunDirectory::new(directory.clone()).prepare().unwrap();
    let soon = kubemu_clock::Clock::system().now() + SignedDuration::from_mins(5);
    let state = state_of(&soon.to_string()).to_string();
    fs::write(directory.join("agent/state.json"), state).unwrap();
    let home = std::env::temp_dir().join(unique("5spot-home-"));
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(OWNER), Some(OWNER)).unwrap_or_default();
    let bus = home.join("bus");
    let address = format!("unix:path={}", bus.display());
    let as_owner = |mut command: Command| {
        command.uid(OWNER).gid(OWNER).stderr(Stdio::piped());
        command
    };
    let _daemon = match as_owner(daemon(&address)).spawn() {
        Ok(daemon) => Ending(daemon),
        Err(error) => {
            eprintln!("NOT TESTED, needs root and dbus-daemon: {error}");
            return;
        }
    };
    let mut notifier = as_owner(Command::new(&program.path))
        .args(["notify", "--log-format", "text", "--run-directory"])
        .arg(&directory)
        .env("DBUS_SESSION_BUS_ADDRESS", &address)
        .spawn()
        .unwrap();
    let lines = BufReader::new(notifier.stderr.take().unwrap()).lines();
    let _notifier = Ending(notifier);
    let unknown = "org.freedesktop.DBus.Error.ServiceUnknown";
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains(unknown)), "it ended");
    let _ = fs::remove_dir_all(home);
    let _ = fs::remove_dir_all(directory);
}
