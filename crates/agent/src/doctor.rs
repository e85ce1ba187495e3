//! `5spot-reclaim-agent doctor`: what is available on this host and in this cluster, and the
//! reason for what is not.

use std::io::{self, Write};
use std::path::Path;

use fivespot_api::name::reclaim_config_map;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::command::{Failure, Outcome};
use crate::config::Config;
use crate::connector::Connector;
use crate::detect::with_causes;
use crate::node::{Attempt, OwnNode};
use crate::proc::Proc;
use crate::run::{config_maps, text_of};
use crate::signal::{Graphics, Now, Sessions, Settings, Source as _};

/// One line of the output.
struct Finding {
    check: &'static str,
    is_fine: bool,
    detail: String,
}

impl Finding {
    /// What was found, or why it is not fine.
    fn of(check: &'static str, found: Result<String, String>) -> Self {
        Self {
            check,
            is_fine: found.is_ok(),
            detail: found.unwrap_or_else(|why| why),
        }
    }
}

/// Runs the checks and prints the results. [`Outcome::No`] if the agent could not work.
pub(crate) async fn examine(
    proc: &Proc,
    signals: &Settings,
    node: Option<Result<OwnNode, Failure>>,
    now: Timestamp,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let events = events().await;
    let processes = processes(proc);
    let (by_events, by_scan) = (events.is_fine, processes.is_fine);
    let mut findings = vec![events, processes];
    let hidden = hidden(proc);
    let mut can_work = hidden.is_none();
    findings.extend(hidden);
    if let Some(sessions) = signals.login_sessions() {
        findings.push(login_sessions(sessions, now).await);
    }
    if let Some(above) = signals.graphics {
        findings.push(graphics(Graphics::new(above, proc.root()), now));
    }
    match node {
        None => {}
        Some(Err(failure)) => {
            can_work = false;
            findings.push(Finding::of("cluster", Err(failure.to_string())));
        }
        Some(Ok(node)) => {
            let found = [
                own_node(&node).await,
                policy(&node).await,
                config(&node).await,
            ];
            can_work &= found.iter().all(|finding| finding.is_fine);
            findings.extend(found);
            findings.extend(clock(&node, now).await);
        }
    }
    for Finding {
        check,
        is_fine,
        detail,
    } in &findings
    {
        let verdict = if *is_fine { "ok" } else { "no" };
        writeln!(out, "{check:<15} {verdict}  {detail}")?;
    }
    let means = match (by_scan, by_events) {
        (false, _) => "none: the host's /proc is required",
        (true, true) => "process events, after one scan of /proc",
        (true, false) => "scans of /proc at poll_interval_ms",
    };
    writeln!(out, "detection: {means}")?;
    Ok(if by_scan && can_work {
        Outcome::Yes
    } else {
        Outcome::No
    })
}

async fn events() -> Finding {
    let found = match Connector::subscribe().await {
        Ok(_) => Ok("available".to_owned()),
        Err(refused) => Err(with_causes(&refused)),
    };
    Finding::of("process events", found)
}

fn processes(proc: &Proc) -> Finding {
    let (mut named, mut kernel) = (0_u32, 0_u32);
    let mut read = || -> io::Result<()> {
        for pid in proc.pids()? {
            let Some(process) = proc.process(pid) else {
                continue;
            };
            match process.names() {
                None => {}
                Some(names) if names.is_bare() => kernel += 1,
                Some(_) => named += 1,
            }
        }
        Ok(())
    };
    let found = match read() {
        Err(error) => Err(with_causes(&error)),
        Ok(()) if kernel == 0 => Err(format!(
            "{named} processes and no kernel threads: this is not the host's /proc; set \
             hostPID: true, or give it with --proc-root"
        )),
        Ok(()) => Ok(format!(
            "{named} processes and {kernel} kernel threads, which never match"
        )),
    };
    Finding::of("/proc", found)
}

/// That the kernel hides the processes of other users, if it does.
fn hidden(proc: &Proc) -> Option<Finding> {
    let path = proc.root().join("self/mountinfo");
    let mounts = std::fs::read(path).unwrap_or_default();
    let option = hidepid(&String::from_utf8_lossy(&mounts), proc.root())?;
    Some(Finding {
        check: "other users",
        is_fine: false,
        detail: format!(
            "{} is mounted with {option}: an agent that is not root does not see the processes of \
             other users, and they never match; mount it without hidepid",
            proc.root().display()
        ),
    })
}

/// The option by which processes are hidden in what is mounted last at `root`, from the lines of
/// `/proc/self/mountinfo`: `hidepid` with another value than 0.
fn hidepid(mounts: &str, root: &Path) -> Option<String> {
    let mut of_proc = mounts.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        let options = source.strip_prefix("proc ")?.split_once(' ')?.1;
        (Path::new(point) == root).then_some(options)
    });
    let mut options = of_proc.next_back()?.split(',');
    let found = options.find(|option| option.starts_with("hidepid="))?;
    let is_off = matches!(found, "hidepid=0" | "hidepid=off");
    (!is_off).then(|| found.to_owned())
}

/// Which login sessions count, and whether logind answers if it is asked.
async fn login_sessions(mut sessions: Sessions, time: Timestamp) -> Finding {
    sessions.settled().await;
    let instant = Instant::now();
    let read = sessions.read(Now { time, instant });
    let note = sessions.note().unwrap_or_default();
    let (is_fine, found) = match read {
        Ok(None) => (true, "none is active".to_owned()),
        Ok(Some(signal)) => (true, signal.reason),
        Err(error) => (false, with_causes(&error)),
    };
    Finding {
        check: "login sessions",
        is_fine: is_fine && !sessions.is_unanswered(),
        detail: format!("{found}; {note}"),
    }
}

/// Whether the agent may look into processes as the user that runs this, and whether a driver says what they
/// use.
fn graphics(mut graphics: Graphics, time: Timestamp) -> Finding {
    let instant = Instant::now();
    let detail = match graphics.read(Now { time, instant }) {
        Ok(Some(signal)) => signal.reason,
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => with_causes(&error),
        Ok(None) | Err(_) => graphics.note().unwrap_or_default(),
    };
    Finding {
        check: "graphics",
        is_fine: graphics.can_be_read(),
        detail,
    }
}

/// How far the clock of this host may be from that of the API server. The operator takes no report of a
/// free host that is a minute ahead of its own clock, or five minutes behind, of which one passes
/// between two reports.
const CLOCKS_APART: SignedDuration = SignedDuration::from_mins(1);

/// Whether this host and the API server agree on the time, if that says it.
async fn clock(node: &OwnNode, now: Timestamp) -> Option<Finding> {
    let found = match node.server_time().await {
        Err(error) => Err(with_causes(&error)),
        Ok(None) => return None,
        Ok(Some(server)) => {
            let apart = now.duration_since(server);
            let which = if apart.is_negative() {
                "behind"
            } else {
                "ahead of"
            };
            let text = format!("{:#} {which} that of the API server", apart.abs());
            if apart.abs() < CLOCKS_APART {
                Ok(text)
            } else {
                let why = "the operator does not believe that this host is free; set it, such as by \
                           timedatectl set-ntp true";
                Err(format!("{text}: {why}"))
            }
        }
    };
    Some(Finding::of("clock", found))
}

async fn own_node(node: &OwnNode) -> Finding {
    let found = match node.check().await {
        Ok(()) => Ok(format!("{} is the Node of this host", node.name)),
        Err(error) => Err(with_causes(&error)),
    };
    Finding::of("node", found)
}

async fn policy(node: &OwnNode) -> Finding {
    let found = match node.try_another().await {
        Ok(Attempt::Rejected) => Ok("it is in force".to_owned()),
        Ok(Attempt::Allowed(policy)) => {
            let why = "is not in force: this token may write more than its annotations";
            Err(format!("{policy} {why}"))
        }
        Ok(Attempt::Unknown) => Err("the Node does not exist".to_owned()),
        Err(error) => Err(with_causes(&error)),
    };
    Finding::of("policy", found)
}

async fn config(node: &OwnNode) -> Finding {
    let name = reclaim_config_map(&node.name);
    let found = match config_maps(node).get_opt(&name).await {
        Err(error) => Err(with_causes(&error)),
        Ok(None) => Ok(format!("no ConfigMap {name}: detection is off")),
        Ok(Some(config_map)) => {
            match Config::parse(text_of(&config_map).unwrap_or_default()) {
                Err(rejected) => Err(rejected.why),
                Ok(config) => {
                    let number = config.patterns.texts().len();
                    let plural = if number == 1 { "" } else { "s" };
                    Ok(format!("{number} pattern{plural}, {}", config.hash))
                }
            }
        }
    };
    Finding::of("configuration", found)
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;

    use super::{clock, graphics, login_sessions};
    use crate::node::{Identity, OwnNode};
    use crate::signal::{Away, Counted, Graphics, Sessions};
    use crate::test_host::TestHost;

    #[tokio::test]
    async fn the_doctor_says_which_sessions_count_and_whether_logind_answers() {
        let host = TestHost::new("doctor-sessions");
        let local = || Sessions::new(&host, Counted::Local);
        let found = async |sessions| {
            let now = "2026-11-27T09:00:00Z".parse().unwrap();
            let found = login_sessions(sessions, now).await;
            let verdict = if found.is_fine { "ok" } else { "no" };
            let text = format!("{verdict} {}", found.detail);
            text.replace(&host.display().to_string(), "DIR")
        };
        insta::assert_snapshot!(found(local()).await, @"no DIR/sessions: No such file or directory (os error 2); local sessions count");
        let session = "ACTIVE=1\nSTATE=active\nREMOTE=0\nCLASS=user\n";
        host.write("sessions/2", session);
        insta::assert_snapshot!(found(local()).await, @"ok login-session: 1 active session; local sessions count");
        let asking = local().without(Away::Locked, &host.join("no-bus"));
        insta::assert_snapshot!(found(asking).await, @"no login-session: 1 active session; local sessions count, also locked ones: logind cannot be asked");
        host.remove("sessions/2");
        let all = Sessions::new(&host, Counted::All);
        insta::assert_snapshot!(found(all).await, @"ok none is active; all sessions count");
    }

    #[test]
    fn the_doctor_says_whether_graphics_cards_can_be_read() {
        let host = TestHost::new("doctor-graphics");
        let found = |proc: &std::path::Path| {
            let now = "2026-11-27T09:00:00Z".parse().unwrap();
            let found = graphics(Graphics::new(0.3, proc), now);
            let verdict = if found.is_fine { "ok" } else { "no" };
            format!("{verdict} {}", found.detail)
        };
        insta::assert_snapshot!(found(&host), @"ok no graphics driver says what its clients use");
        insta::assert_snapshot!(found(&host.join("none")), @"no No such file or directory (os error 2)");
        host.write("50/cgroup", "0::/user.slice\n");
        host.write(
            "50/stat",
            "50 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n",
        );
        std::fs::create_dir(host.join("50/fd")).unwrap();
        std::os::unix::fs::symlink("/dev/kfd", host.join("50/fd/3")).unwrap();
        insta::assert_snapshot!(found(&host), @"ok graphics: /dev/kfd is open");
    }

    #[tokio::test]
    async fn the_doctor_compares_the_clock_with_that_of_the_api_server() {
        let found = async |date: Option<&'static str>| {
            let service = tower::service_fn(move |request: Request<Body>| {
                assert_eq!(request.uri().path(), "/version");
                let mut answer = Response::new(Body::empty());
                let date = date.map(|date| date.parse().unwrap());
                answer
                    .headers_mut()
                    .extend(date.map(|date| (http::header::DATE, date)));
                std::future::ready(Ok::<_, std::io::Error>(answer))
            });
            let node = OwnNode {
                client: kube::Client::new(service, "default"),
                name: "worker-1".to_owned(),
                identity: Identity::Unchecked,
            };
            let now = "2026-11-27T09:00:00Z".parse().unwrap();
            let found = clock(&node, now).await?;
            let verdict = if found.is_fine { "ok" } else { "no" };
            Some(format!("{verdict} {}", found.detail))
        };
        for silent in [None, Some("today")] {
            assert_eq!(found(silent).await, None);
        }
        let said = async |date| found(Some(date)).await.unwrap();
        insta::assert_snapshot!(said("Fri, 27 Nov 2026 08:59:58 GMT").await, @"ok 2s ahead of that of the API server");
        insta::assert_snapshot!(said("Fri, 27 Nov 2026 09:07:00 GMT").await, @"no 7m behind that of the API server: the operator does not believe that this host is free; set it, such as by timedatectl set-ntp true");
        insta::assert_snapshot!(said("Fri, 27 Nov 2026 08:58:59 GMT").await, @"no 1m 1s ahead of that of the API server: the operator does not believe that this host is free; set it, such as by timedatectl set-ntp true");
    }
}
