//! Plays a story: the shipped operator against the embedded server and a simulated Cluster API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fivespot_testkit::{Cluster, Coordination, Gate, Lease, Life, Mortal, Terms};
use jiff::{SignedDuration, Timestamp};

use crate::deed::{Deed, make_peace};
use crate::end::complaint;
use crate::fault::Kind;
use crate::seen::{Places, Seen};
use crate::stage::{Cell, Seat, Stage};
use crate::story::{Story, Trouble, calendar};

/// How long after the last fault, edit and edge everything has to be as it is wanted: longer than
/// any retry, drain and the pause between two replacements.
const PATIENCE: SignedDuration = SignedDuration::from_mins(45);

/// How far ahead of a quiet moment an edge is that is met with a wrong clock.
const LEAD: SignedDuration = SignedDuration::from_mins(20);

/// How long before an edge a machine is still at rest.
const BEFORE: SignedDuration = SignedDuration::from_secs(1);

/// How long tokio's own clock, which moves only when nothing else can, may run.
const STUCK: Duration = Duration::from_hours(24);

/// What a story has come to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Of everything that happened, in order.
    pub(crate) hash: u64,
    pub(crate) trace: Vec<String>,
    /// The laws that were broken, and how.
    pub(crate) broken: Vec<(&'static str, String)>,
    pub(crate) checks: u64,
    pub(crate) seconds: u64,
    pub(crate) writes: usize,
    pub(crate) struck: BTreeMap<Kind, u64>,
    pub(crate) deeds: BTreeMap<String, u64>,
    pub(crate) cells: BTreeSet<Cell>,
}

/// Plays a story to its end on this thread.
pub(crate) fn play(story: &Story) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(tell(story)),
        Err(error) => Outcome {
            broken: vec![("a story can be told", error.to_string())],
            ..Outcome::default()
        },
    }
}

async fn tell(story: &Story) -> Outcome {
    let cluster = Cluster::seeded(story.begins, story.seed).await;
    cluster.add_cluster().await;
    let places = story.machines.iter().map(|machine| Places {
        name: machine.name.clone(),
        triple: cluster.triple(&machine.name),
        cluster: cluster.cluster_path(),
    });
    let places: Vec<Places> = places.collect();
    let faults = story.troubles.iter().filter_map(|trouble| match trouble {
        Trouble::Fault(fault) => Some(*fault),
        _ => None,
    });
    let client = cluster.server().client();
    let lease = (story.operators > 1).then(|| LEASE.to_owned());
    let stage = Stage::new(client, places.clone(), faults.collect(), lease);
    let stage = if story.is_undisturbed() {
        stage.undisturbed()
    } else {
        stage
    };
    let stage = Arc::new(stage);
    let mut theatre = Theatre {
        cluster,
        posts: (0..story.operators)
            .map(|number| Post {
                name: format!("operator-{number}"),
                operator: None,
                absent_until: story.begins,
                gate: Gate::default(),
            })
            .collect(),
        stage,
        seed: story.seed,
        deeds: BTreeMap::new(),
    };
    let told = async {
        theatre.days(story).await;
        theatre.end(story, &places).await;
    };
    let is_told = tokio::time::timeout(STUCK, told).await.is_ok();
    if !is_told {
        let how = format!("at {}", theatre.cluster.clock().now());
        theatre
            .stage
            .breaks("nothing waits for what never comes", how);
    }
    theatre.outcome(story)
}

/// Where the Lease is that several operators agree by.
const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases/5spot-leader";

/// The same Lease as an operator is told of it. It binds for longer than usual, so that days do not
/// consist of renewals.
fn lease() -> Option<Lease> {
    let minutes = SignedDuration::from_mins;
    let terms = Terms::new(minutes(10), minutes(8), minutes(2)).ok()?;
    Some(Lease {
        namespace: "5spot-system".to_owned(),
        name: "5spot-leader".to_owned(),
        terms,
    })
}

/// Something that happens at its time, faults aside.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Deed(usize, Deed),
    /// The clock is wrong from now on by so many seconds.
    Clock(i64),
    /// The operators' host is suspended from now on, or not any more.
    Suspend(bool),
    /// The operator of that number is cut off from now on, or not any more.
    CutOff(usize, bool),
}

/// What happens in a story, in its order.
fn happenings(story: &Story) -> Vec<(Timestamp, Happening)> {
    let after = |at: Timestamp, minutes: u8| {
        (at + SignedDuration::from_mins(i64::from(minutes))).min(story.calm)
    };
    let mut all = Vec::new();
    for trouble in &story.troubles {
        match *trouble {
            Trouble::Fault(_) => {}
            Trouble::Deed(at, whose, deed) => {
                all.push((at, Happening::Deed(whose, deed)));
            }
            Trouble::Clock(at, ahead, minutes) => {
                all.push((at, Happening::Clock(ahead)));
                all.push((after(at, minutes), Happening::Clock(0)));
            }
            Trouble::Suspend(at, minutes) => {
                all.push((at, Happening::Suspend(true)));
                all.push((after(at, minutes), Happening::Suspend(false)));
            }
            Trouble::CutOff(at, whom, minutes) => {
                all.push((at, Happening::CutOff(whom, true)));
                all.push((after(at, minutes), Happening::CutOff(whom, false)));
            }
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

/// A place that is to be held by an operator.
struct Post {
    name: String,
    operator: Option<Mortal>,
    /// Until when it is vacant after a death.
    absent_until: Timestamp,
    gate: Gate,
}

impl Post {
    fn life(&self) -> Option<&Life> {
        self.operator.as_ref().map(Mortal::life)
    }
}

/// Ready once the operator of this post has died.
async fn death(post: Option<&Post>) {
    match post.and_then(Post::life) {
        Some(life) => life.ended().await,
        None => std::future::pending().await,
    }
}

struct Theatre {
    cluster: Cluster,
    stage: Arc<Stage>,
    posts: Vec<Post>,
    seed: u64,
    deeds: BTreeMap<String, u64>,
}

impl Theatre {
    /// Everything until nothing more goes wrong.
    async fn days(&mut self, story: &Story) {
        self.cluster.apply(&calendar(story.begins)).await;
        self.stage.note_inputs(story.begins).await;
        for machine in &story.machines {
            self.cluster.apply(&machine.object).await;
        }
        for (at, happening) in happenings(story) {
            self.pass_until(at).await;
            self.stage.note(format!("{at} {happening:?}"));
            match happening {
                Happening::Deed(whose, deed) => {
                    if let Some(machine) = story.machines.get(whose) {
                        self.count(&format!("{deed:?}"));
                        deed.play(&self.cluster, &machine.name, at).await;
                        self.stage.note_inputs(at).await;
                        self.stage.count(at).await;
                    }
                }
                Happening::Clock(seconds) => {
                    match seconds {
                        0 => {}
                        1.. => self.count("ClockSetForward"),
                        _ => self.count("ClockSetBack"),
                    }
                    let ahead = self.stage.host.offset();
                    if ahead.is_positive() {
                        self.stage.state().doubtful_until = at + ahead;
                    }
                    self.stage.host.set(SignedDuration::from_secs(seconds));
                }
                Happening::Suspend(is_suspended) => {
                    if is_suspended {
                        self.count("Suspended");
                    }
                    self.suspend(is_suspended);
                }
                Happening::CutOff(whom, is_cut_off) => {
                    if is_cut_off {
                        self.count("CutOff");
                    }
                    match self.posts.get(whom) {
                        Some(post) if is_cut_off => post.gate.shut(),
                        Some(post) => post.gate.open(),
                        None => {}
                    }
                }
            }
        }
        self.pass_until(story.calm).await;
        self.stage.state().is_calm = true;
        // Nor does a crash outlast the calm: what restarts operators does so again.
        self.stage.state().downtime = 0;
        for post in &mut self.posts {
            post.absent_until = story.calm;
        }
        for machine in &story.machines {
            make_peace(&self.cluster, &machine.name).await;
        }
    }

    /// Suspends the operators' host, or resumes it.
    fn suspend(&self, is_suspended: bool) {
        let now = self.cluster.clock().now();
        if is_suspended {
            self.stage.host.suspend(now);
        } else {
            self.stage.host.resume(now);
        }
        for post in &self.posts {
            if is_suspended {
                post.gate.shut();
            } else {
                post.gate.open();
            }
        }
    }

    /// Holds the next edge of the first machine against the clock of the operators' host, which is
    /// set over it, sleeps over it, or does neither: half a minute after that clock shows the edge,
    /// or the host wakes, the operator has noticed.
    async fn meet_an_edge(&mut self, story: &Story, places: &[Places]) {
        let now = self.cluster.clock().now();
        let Some(places) = places.first() else {
            return;
        };
        let seen = Seen::of(&self.cluster.server().client(), places).await;
        let edge = seen.next_edge(now + LEAD);
        let soon = now + SignedDuration::from_hours(72);
        let Some(edge) = edge.filter(|edge| *edge < soon) else {
            return;
        };
        let seconds = SignedDuration::from_secs;
        let what = match story.seed % 3 {
            0 => {
                self.pass_until(edge).await;
                "it comes by itself"
            }
            1 => {
                self.pass_until(edge - LEAD / 2).await;
                self.stage.host.set(LEAD);
                "the clock is set forward over it"
            }
            _ => {
                self.pass_until(edge - LEAD / 2).await;
                self.suspend(true);
                self.pass_until(edge + LEAD / 2).await;
                self.suspend(false);
                "the host is suspended over it"
            }
        };
        // One of several has to get its Lease back first.
        let late = match (story.seed % 3, story.operators) {
            (0, _) => seconds(1),
            (2, 2..) => seconds(180),
            _ => seconds(31),
        };
        let begun = self.cluster.clock().now();
        self.pass_until(begun + late).await;
        let seen = Seen::of(&self.cluster.server().client(), places).await;
        let shown = begun + self.stage.host.offset();
        let in_schedule = seen.owner["status"]["inSchedule"].as_bool();
        let is_noticed =
            in_schedule == Some(seen.is_in_force(shown)) && !seen.is_overdue(shown);
        self.stage.state().checks += 1;
        if !is_noticed && !seen.is_paused() && !seen.is_deleting() {
            let how = format!("{} at {edge}: {what}", places.name);
            self.stage
                .breaks("L9 an edge is met half a minute late at most", how);
        }
    }

    fn count(&mut self, deed: &str) {
        *self.deeds.entry(deed.to_owned()).or_default() += 1;
    }

    /// Holds every machine against what its user wants, twice: some time after the last of its
    /// edges, and after the next. In between nothing may be written.
    async fn end(&mut self, story: &Story, places: &[Places]) {
        let mut looks: Vec<(Timestamp, usize, bool)> = Vec::new();
        let begin = story.calm + PATIENCE;
        self.pass_until(begin).await;
        for at in 0..story.machines.len() {
            let Some(places) = places.get(at) else {
                continue;
            };
            let seen = Seen::of(&self.cluster.server().client(), places).await;
            let first = rest_after(&seen, begin);
            looks.push((first, at, false));
            if let Some(edge) = seen.next_edge(first) {
                // Nobody waits for the thirtieth of February.
                let is_soon = edge < begin + SignedDuration::from_hours(72);
                if is_soon {
                    let idle = edge - BEFORE;
                    looks.extend((idle > first).then_some((idle, at, true)));
                    looks.push((rest_after(&seen, edge + PATIENCE), at, false));
                }
            }
        }
        looks.sort_unstable();
        let mut writes = BTreeMap::new();
        for (when, at, is_idle) in looks {
            let Some(places) = places.get(at) else {
                continue;
            };
            self.pass_until(when).await;
            let name = &places.name;
            let served = self.stage.state().served.get(name).copied();
            if is_idle {
                if writes.get(name) != Some(&served) {
                    let how = format!("{name} before {when}");
                    self.stage
                        .breaks("S13 what is as it is wanted is left alone", how);
                }
                continue;
            }
            let seen = Seen::of(&self.cluster.server().client(), places).await;
            if let Some(how) = complaint(&seen, when) {
                let how = format!("{name} at {when}: {how}");
                self.stage
                    .breaks("L1-L8 everything ends as it is wanted", how);
            }
            self.stage.state().checks += 1;
            writes.insert(name.clone(), served);
        }
        self.meet_an_edge(story, places).await;
    }

    /// Lets time pass. An operator that dies on the way is succeeded.
    async fn pass_until(&mut self, to: Timestamp) {
        let clock = self.cluster.clock().clone();
        loop {
            for number in 0..self.posts.len() {
                self.look_after(number);
            }
            let vacant = self.posts.iter().filter(|post| post.operator.is_none());
            let limit = vacant
                .map(|post| post.absent_until)
                .fold(to, Timestamp::min);
            let has_moved = tokio::select! {
                biased;
                () = death(self.posts.first()) => true,
                () = death(self.posts.get(1)) => true,
                moved = clock.advance_to_next(limit) => moved.is_some(),
            };
            if has_moved {
                continue;
            }
            clock.advance_to(limit).await;
            let mut lives = self.posts.iter().filter_map(Post::life);
            if limit >= to && !lives.any(Life::is_over) {
                return;
            }
        }
    }

    /// Buries one that has died, and starts another when it is time.
    fn look_after(&mut self, number: usize) {
        let now = self.cluster.clock().now();
        let is_one_of_several = self.posts.len() > 1;
        let Some(post) = self.posts.get_mut(number) else {
            return;
        };
        if let Some(operator) = &post.operator {
            if operator.has_ended() {
                let how = format!("at {now}");
                self.stage.breaks("the operator never ends by itself", how);
            } else if !operator.life().is_over() {
                return;
            }
            let minutes = std::mem::take(&mut self.stage.state().downtime);
            post.absent_until = now + SignedDuration::from_mins(i64::from(minutes));
        }
        if now < post.absent_until {
            post.operator = None;
            return;
        }
        self.stage.note(format!("{now} {} starts", post.name));
        let (seed, name) = (self.seed, post.name.clone());
        let host = self.stage.host.clone();
        let seat = Seat {
            stage: self.stage.clone(),
            name: name.clone(),
            gate: post.gate.clone(),
        };
        let lease = lease().filter(|_| is_one_of_several);
        // The heir is there first, so that time does not pass in between.
        let heir = self.cluster.operator_behind(Arc::new(seat), |options| {
            options.seed = seed;
            options.identity = name;
            options.clock = options.clock.of_host(host);
            if let Some(lease) = lease {
                options.coordination = Coordination::Leader(lease);
            }
        });
        post.operator = Some(heir);
    }

    fn outcome(self, story: &Story) -> Outcome {
        let now = self.cluster.clock().now();
        let hash = self.stage.hash();
        let mut state = self.stage.state();
        Outcome {
            hash,
            trace: std::mem::take(&mut state.trace),
            broken: std::mem::take(&mut state.broken),
            checks: state.checks,
            seconds: u64::try_from(now.duration_since(story.begins).as_secs())
                .unwrap_or(0),
            writes: state.served.values().sum(),
            struck: std::mem::take(&mut state.struck),
            deeds: self.deeds,
            cells: std::mem::take(&mut state.cells),
        }
    }
}

/// The first instant from `now` on before which no edge has been for long enough.
fn rest_after(seen: &Seen, now: Timestamp) -> Timestamp {
    let mut rest = now;
    let mut edge = seen.next_edge(now - PATIENCE);
    while let Some(at) = edge.filter(|at| *at <= rest) {
        rest = at + PATIENCE;
        edge = seen.next_edge(at);
    }
    rest
}

/// The numbers of the troubles without which a story does not break the same law: others are
/// left out one by one, halves first.
pub(crate) fn shrink(story: &Story, law: &str) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..story.troubles.len()).collect();
    let breaks = |kept: &[usize]| {
        let outcome = play(&story.only(kept));
        outcome.broken.iter().any(|(broken, _)| *broken == law)
    };
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + size).min(kept.len()));
            if breaks(&fewer) {
                kept = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_tell_equal_stories_whatever_the_keys_of_maps() {
        for seed in [3, 11] {
            // Every thread has random keys of its own.
            let told = || {
                let one = std::thread::spawn(move || play(&Story::of(seed)));
                one.join().unwrap()
            };
            let (first, second) = (told(), told());
            assert_eq!(first.trace, second.trace);
            assert_eq!(first.hash, second.hash);
        }
    }

    #[test]
    fn a_story_without_troubles_breaks_no_law_and_is_judged() {
        let outcome = play(&Story::of(1).only(&[]));
        assert_eq!(outcome.broken, []);
        assert!(outcome.checks > 100, "{}", outcome.checks);
    }
}
