//! Being one of several shards.

use std::pin::pin;
use std::sync::Arc;

use jiff::Timestamp;
use kube::runtime::watcher;
use tokio::sync::oneshot;

use super::{Answer, Desk, News, Standing, alarm, follow_leases};
use crate::membership::{Membership, Move};
use crate::shell::Shell;
use crate::tenure::Claim;
use crate::{Lease, failure};
use fivespot_runtime::lease::{RING_LABEL, Stored};

/// Acts on its share of the objects, for as long as it is a member.
pub(super) async fn share(
    shell: &Arc<Shell>,
    lease: &Lease,
    mut leave: oneshot::Receiver<()>,
) {
    let config =
        watcher::Config::default().labels(&format!("{RING_LABEL}={}", lease.name));
    let (_watch, mut shown) = follow_leases(shell, &lease.namespace, config);
    let identity = shell.options.identity.clone();
    let desk = Desk {
        shell,
        lease,
        terms: lease.terms,
        name: format!("{}-{identity}", lease.name),
        ring: Some(lease.name.clone()),
    };
    let mut membership = Membership::new(desk.name.clone(), identity, lease.terms);
    loop {
        take_up(shell, &membership);
        let is_settled = shell.tenure.is_settled();
        match membership.next(shell.tenure.clock().now(), is_settled) {
            Move::Wait(until) => tokio::select! {
                biased;
                _ = &mut leave => break,
                Some(news) = shown.recv() => hear(shell, &mut membership, news.what),
                () = shell.tenure.changed(), if !is_settled => {}
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
                        Some(news) = shown.recv() => {
                            hear(shell, &mut membership, news.what);
                            take_up(shell, &membership);
                        }
                    }
                };
                note(shell, &mut membership, ended, asked);
            }
        }
    }
    shell.tenure.replace(Claim::Nothing);
    leave_ring(&desk, &mut membership).await;
}

/// Says first that nothing is claimed any more, so that others need not wait.
async fn leave_ring(desk: &Desk<'_>, membership: &mut Membership) {
    let Some((record, version)) = membership.leave(desk.shell.tenure.clock().now())
    else {
        return;
    };
    let Answer::Done(released) = desk.replace(&record, &version).await else {
        // It lapses by itself.
        tracing::warn!(lease = desk.name, "Lease could not be released");
        return;
    };
    tracing::info!(lease = desk.name, "Lease released");
    // What stays is removed by another shard.
    let which = (released.uid.as_str(), released.version.as_str());
    let _ = desk.remove(&desk.name, which).await;
}

fn hear(shell: &Shell, membership: &mut Membership, news: News) {
    let now = shell.tenure.clock().now();
    match news {
        News::Listed(all) => membership.listed(all, now),
        News::Changed(lease) => membership.shown(lease, now),
        News::Gone(lease) => membership.gone(&lease),
    }
}

/// How a step ended.
enum Ended {
    Read(Option<Stored>),
    Created(Answer<Stored>),
    Replaced(Answer<Stored>),
    /// A Lease of that uid is gone.
    Removed(String),
    /// A Lease of that uid was to be removed and has changed.
    Renewed(String),
    Failed(String),
}

async fn carry_out(desk: &Desk<'_>, step: Move) -> Ended {
    match step {
        Move::Wait(_) | Move::Read => match desk.read().await {
            Answer::Done(found) => Ended::Read(found),
            Answer::Overtaken => Ended::Failed("Leases are not served".to_owned()),
            Answer::Failed(why) => Ended::Failed(why),
        },
        Move::Create(record) => Ended::Created(desk.create(&record).await),
        Move::Replace { record, version } => {
            Ended::Replaced(desk.replace(&record, &version).await)
        }
        Move::Remove { name, uid, version } => {
            let removed = desk.remove(&name, (&uid, &version)).await;
            match removed.map_err(|error| (failure::code(&error), error)) {
                Ok(()) | Err((Some(404), _)) => {
                    tracing::info!(lease = name, "removed a Lease that nobody renewed");
                    Ended::Removed(uid)
                }
                Err((Some(409), _)) => Ended::Renewed(uid),
                Err((_, error)) => Ended::Failed(failure::words(&error)),
            }
        }
    }
}

fn note(shell: &Shell, membership: &mut Membership, ended: Ended, asked: Timestamp) {
    match ended {
        Ended::Read(found) => membership.read(found),
        Ended::Created(Answer::Done(stored)) | Ended::Replaced(Answer::Done(stored)) => {
            membership.wrote(stored, asked);
        }
        // The watch has yet to show whose it is.
        Ended::Created(Answer::Overtaken) => membership.failed(asked),
        Ended::Replaced(Answer::Overtaken) => membership.was_overtaken(),
        Ended::Removed(uid) => membership.removed(&uid),
        Ended::Renewed(uid) => membership.was_renewed(&uid, shell.tenure.clock().now()),
        Ended::Created(Answer::Failed(error))
        | Ended::Replaced(Answer::Failed(error))
        | Ended::Failed(error) => {
            tracing::warn!(error, "Lease could not be read, renewed or removed");
            membership.failed(asked);
        }
    }
}

/// Acts on what the membership has come to.
fn take_up(shell: &Shell, membership: &Membership) {
    let now = shell.tenure.clock().now();
    let share = membership.share(now);
    let count = membership.count(now);
    let is_member = share.is_some();
    let is_gain = shell
        .tenure
        .replace(share.map_or(Claim::Nothing, Claim::Share));
    shell.stands(match (is_member, shell.tenure.is_in_force()) {
        (_, true) => Standing::Sharing(count),
        (true, false) => Standing::Lapsed,
        (false, false) => Standing::Joining(count),
    });
    if is_gain {
        shell.wake_own();
    }
}
