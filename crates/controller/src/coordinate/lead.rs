//! Leading, and standing by.

use std::sync::Arc;

use kube::runtime::watcher;
use tokio::sync::oneshot;

use super::{Answer, Desk, News, Standing, alarm, follow_leases};
use crate::Lease;
use crate::election::{Election, Move};
use crate::shell::Shell;
use crate::tenure::Claim;

/// Leads whenever nobody else does.
pub(super) async fn lead(
    shell: &Arc<Shell>,
    lease: &Lease,
    mut leave: oneshot::Receiver<()>,
) {
    let config =
        watcher::Config::default().fields(&format!("metadata.name={}", lease.name));
    let (_watch, mut shown) = follow_leases(shell, &lease.namespace, config);
    let desk = Desk {
        shell,
        lease,
        terms: lease.terms,
        name: lease.name.clone(),
        ring: None,
    };
    let mut election = Election::new(shell.options.identity.clone(), lease.terms);
    loop {
        take_up(shell, &election);
        match election.next(shell.clock.now()) {
            Move::Wait(until) => tokio::select! {
                biased;
                _ = &mut leave => break,
                Some(news) = shown.recv() => hear(shell, &mut election, news.what),
                () = alarm(shell, until) => {}
            },
            step => carry_out(&desk, &mut election, step).await,
        }
    }
    shell.tenure.replace(Claim::Nothing);
    if let Some((record, version)) = election.release(shell.clock.now()) {
        match desk.replace(&record, &version).await {
            Answer::Done(_) => tracing::info!(lease = lease.name, "Lease released"),
            // It lapses by itself.
            Answer::Overtaken | Answer::Failed(_) => {
                tracing::warn!(lease = lease.name, "Lease could not be released");
            }
        }
    }
}

fn hear(shell: &Shell, election: &mut Election, news: News) {
    let now = shell.clock.now();
    match news {
        // The selector leaves one at most.
        News::Listed(all) => election.shown(all.into_iter().next(), now),
        News::Changed(lease) => election.shown(Some(lease), now),
        News::Gone(_) => election.shown(None, now),
    }
}

async fn carry_out(desk: &Desk<'_>, election: &mut Election, step: Move) {
    let asked = desk.shell.clock.now();
    let answer = match step {
        Move::Wait(_) => return,
        Move::Read => match desk.read().await {
            Answer::Done(found) => {
                return election.read(found, desk.shell.clock.now());
            }
            Answer::Overtaken => Answer::Failed("Leases are not served".to_owned()),
            Answer::Failed(why) => Answer::Failed(why),
        },
        Move::Create(record) => desk.create(&record).await,
        Move::Replace { record, version } => desk.replace(&record, &version).await,
    };
    match answer {
        Answer::Done(stored) => election.wrote(stored, asked),
        Answer::Overtaken => election.was_overtaken(),
        Answer::Failed(error) => {
            tracing::warn!(
                lease = desk.name,
                error,
                "Lease could not be renewed or taken"
            );
            election.failed(asked);
        }
    }
}

/// Acts on what the election has come to.
fn take_up(shell: &Shell, election: &Election) {
    let claim = election.fence().map_or(Claim::Nothing, Claim::Until);
    let is_gain = shell.tenure.replace(claim);
    let standing = match election.holder() {
        _ if shell.tenure.is_in_force() => Standing::Leading,
        Some(holder) => Standing::Following(holder.to_owned()),
        None => Standing::Undecided,
    };
    shell.stands(standing);
    if is_gain {
        shell.wake_own();
    }
}
