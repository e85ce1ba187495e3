//! Leading, and standing by.

use std::pin::pin;
use std::sync::Arc;

use jiff::Timestamp;
use kube::runtime::watcher;
use tokio::sync::oneshot;

use super::{Answer, Desk, News, Standing, alarm, follow_leases};
use crate::Lease;
use crate::shell::Shell;
use crate::tenure::Claim;
use fivespot_runtime::lease::Stored;
use fivespot_runtime::lease::{Election, Move};

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
        match election.next(shell.tenure.clock().now()) {
            Move::Wait(until) => tokio::select! {
                biased;
                _ = &mut leave => break,
                Some(news) = shown.recv() => hear(shell, &mut election, news.what),
                () = alarm(shell, until) => {}
            },
            step => {
                let asked = shell.tenure.clock().now();
                let mut request = pin!(carry_out(&desk, step));
                // What is shown meanwhile is heard: an answer may be long in coming.
                let ended = loop {
                    tokio::select! {
                        biased;
                        ended = &mut request => break ended,
                        Some(news) = shown.recv() => hear(shell, &mut election, news.what),
                    }
                };
                note(shell, &mut election, ended, asked);
            }
        }
    }
    shell.tenure.replace(Claim::Nothing);
    if let Some((record, version)) = election.release(shell.tenure.clock().now()) {
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
    let now = shell.tenure.clock().now();
    match news {
        // The selector leaves one at most.
        News::Listed(all) => election.shown(all.into_iter().next(), now),
        News::Changed(lease) => election.shown(Some(lease), now),
        News::Gone(_) => election.shown(None, now),
    }
}

/// How a step ended.
enum Ended {
    Read(Option<Stored>),
    Written(Answer<Stored>),
}

async fn carry_out(desk: &Desk<'_>, step: Move) -> Ended {
    match step {
        Move::Wait(_) | Move::Read => match desk.read().await {
            Answer::Done(found) => Ended::Read(found),
            Answer::Overtaken => {
                Ended::Written(Answer::Failed("Leases are not served".to_owned()))
            }
            Answer::Failed(why) => Ended::Written(Answer::Failed(why)),
        },
        Move::Create(record) => Ended::Written(desk.create(&record).await),
        Move::Replace { record, version } => {
            Ended::Written(desk.replace(&record, &version).await)
        }
    }
}

fn note(shell: &Shell, election: &mut Election, ended: Ended, asked: Timestamp) {
    match ended {
        Ended::Read(found) => election.read(found, shell.tenure.clock().now()),
        Ended::Written(Answer::Done(stored)) => election.wrote(stored, asked),
        Ended::Written(Answer::Overtaken) => election.was_overtaken(),
        Ended::Written(Answer::Failed(error)) => {
            shell.outage.complain(
                format_args!("Lease could not be read, renewed or taken"),
                &error,
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
        _ if election.fence().is_some() => Standing::Lapsed,
        Some(holder) => Standing::Following(holder.to_owned()),
        None => Standing::Undecided,
    };
    shell.stands(standing);
    if is_gain {
        shell.wake_own();
    }
}
