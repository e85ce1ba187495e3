//! Plays a story: the shipped operator against the embedded server and a simulated Cluster API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fivespot_testkit::{Cluster, Mortal, machine_path};
use jiff::{SignedDuration, Timestamp};

use crate::deed::make_peace;
use crate::end::complaint;
use crate::fault::Kind;
use crate::seen::{Places, Seen};
use crate::stage::{Cell, Stage};
use crate::story::{Story, Trouble, next_edge};

/// How long after the last fault, edit and edge everything has to be as it is wanted: longer than
/// any retry, drain and the pause between two replacements.
const PATIENCE: SignedDuration = SignedDuration::from_mins(45);

/// How long before an edge a machine is still at rest: a little longer than openings are prepared
/// ahead.
const PREPARING: SignedDuration = SignedDuration::from_secs(61);

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
        Trouble::Deed(..) => None,
    });
    let client = cluster.server().client();
    let stage = Arc::new(Stage::new(client, places.clone(), faults.collect()));
    let mut theatre = Theatre {
        cluster,
        stage,
        operator: None,
        seed: story.seed,
        absent_until: story.begins,
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

struct Theatre {
    cluster: Cluster,
    stage: Arc<Stage>,
    operator: Option<Mortal>,
    seed: u64,
    /// Until when an operator that has died stays away.
    absent_until: Timestamp,
    deeds: BTreeMap<String, u64>,
}

impl Theatre {
    /// Everything until nothing more goes wrong.
    async fn days(&mut self, story: &Story) {
        for machine in &story.machines {
            self.cluster.apply(&machine.object).await;
        }
        let mut deeds: Vec<_> = story
            .troubles
            .iter()
            .filter_map(|trouble| match trouble {
                Trouble::Deed(at, whose, deed) => Some((*at, *whose, *deed)),
                Trouble::Fault(_) => None,
            })
            .collect();
        deeds.sort_by_key(|(at, ..)| *at);
        for (at, whose, deed) in deeds {
            self.pass_until(at).await;
            let Some(machine) = story.machines.get(whose) else {
                continue;
            };
            self.stage.note(format!("{at} {deed:?} {}", machine.name));
            *self.deeds.entry(format!("{deed:?}")).or_default() += 1;
            deed.play(&self.cluster, &machine.name, at).await;
        }
        self.pass_until(story.calm).await;
        self.stage.state().is_calm = true;
        // Nor does a crash outlast the calm: what restarts operators does so again.
        self.stage.state().downtime = 0;
        self.absent_until = story.calm;
        for machine in &story.machines {
            make_peace(&self.cluster, &machine.name).await;
        }
    }

    /// Holds every machine against what its user wants, twice: some time after the last of its
    /// edges, and after the next. In between nothing may be written before the next is prepared.
    async fn end(&mut self, story: &Story, places: &[Places]) {
        let mut looks: Vec<(Timestamp, usize, bool)> = Vec::new();
        let begin = story.calm + PATIENCE;
        self.pass_until(begin).await;
        for (at, machine) in story.machines.iter().enumerate() {
            let path = machine_path(&machine.name);
            let object = self.cluster.get(&path).await.unwrap_or_default();
            let first = rest_after(&object, begin);
            looks.push((first, at, false));
            if let Some(edge) = next_edge(&object, first) {
                // Nobody waits for the thirtieth of February.
                let is_soon = edge < begin + SignedDuration::from_hours(72);
                if is_soon {
                    let idle = edge - PREPARING;
                    looks.extend((idle > first).then_some((idle, at, true)));
                    looks.push((edge + PATIENCE, at, false));
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
    }

    /// Lets time pass. An operator that dies on the way is succeeded.
    async fn pass_until(&mut self, to: Timestamp) {
        let clock = self.cluster.clock().clone();
        loop {
            self.look_after_operator();
            let limit = if self.operator.is_none() {
                to.min(self.absent_until)
            } else {
                to
            };
            let has_moved = match &self.operator {
                Some(operator) => tokio::select! {
                    biased;
                    () = operator.life().ended() => true,
                    moved = clock.advance_to_next(limit) => moved.is_some(),
                },
                None => clock.advance_to_next(limit).await.is_some(),
            };
            if has_moved {
                continue;
            }
            clock.advance_to(limit).await;
            if limit >= to
                && self
                    .operator
                    .as_ref()
                    .is_none_or(|one| !one.life().is_over())
            {
                return;
            }
        }
    }

    /// Buries one that has died, and starts another when it is time.
    fn look_after_operator(&mut self) {
        let now = self.cluster.clock().now();
        if let Some(operator) = &self.operator {
            if operator.has_ended() {
                let how = format!("at {now}");
                self.stage.breaks("the operator never ends by itself", how);
            } else if !operator.life().is_over() {
                return;
            }
            let minutes = std::mem::take(&mut self.stage.state().downtime);
            self.absent_until = now + SignedDuration::from_mins(i64::from(minutes));
        }
        if now < self.absent_until {
            self.operator = None;
            return;
        }
        self.stage.note(format!("{now} an operator starts"));
        let seed = self.seed;
        let proxy = self.stage.clone();
        // The heir is there first, so that time does not pass in between.
        let heir = self
            .cluster
            .operator_behind(proxy, |options| options.seed = seed);
        self.operator = Some(heir);
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
fn rest_after(object: &serde_json::Value, now: Timestamp) -> Timestamp {
    let mut rest = now;
    let mut edge = next_edge(object, now - PATIENCE);
    while let Some(at) = edge.filter(|at| *at <= rest) {
        rest = at + PATIENCE;
        edge = next_edge(object, at);
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
