//! Being one of several shards.

use std::sync::Arc;

use kube::runtime::watcher;
use tokio::sync::oneshot;

use super::{Answer, Desk, News, Standing, alarm, follow_leases};
use crate::lease::RING_LABEL;
use crate::membership::{Membership, Move};
use crate::shell::Shell;
use crate::tenure::Claim;
use crate::{Lease, failure};

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
        match membership.next(shell.clock.now(), is_settled) {
            Move::Wait(until) => tokio::select! {
                biased;
                _ = &mut leave => break,
                Some(news) = shown.recv() => hear(shell, &mut membership, news.what),
                () = shell.tenure.changed(), if !is_settled => {}
                () = alarm(shell, until) => {}
            },
            step => carry_out(&desk, &mut membership, step).await,
        }
    }
    shell.tenure.replace(Claim::Nothing);
    leave_ring(&desk, &mut membership).await;
}

/// Says first that nothing is claimed any more, so that others need not wait.
async fn leave_ring(desk: &Desk<'_>, membership: &mut Membership) {
    let Some((record, version)) = membership.leave(desk.shell.clock.now()) else {
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
    let now = shell.clock.now();
    match news {
        News::Listed(all) => membership.listed(all, now),
        News::Changed(lease) => membership.shown(lease, now),
        News::Gone(lease) => membership.gone(&lease),
    }
}

async fn carry_out(desk: &Desk<'_>, membership: &mut Membership, step: Move) {
    let asked = desk.shell.clock.now();
    let complain = |error: &str| {
        tracing::warn!(
            lease = desk.name,
            error,
            "Lease could not be renewed or taken"
        );
    };
    match step {
        Move::Wait(_) => {}
        Move::Read => match desk.read().await {
            Answer::Done(found) => membership.read(found),
            Answer::Overtaken => membership.failed(asked),
            Answer::Failed(error) => {
                complain(&error);
                membership.failed(asked);
            }
        },
        Move::Create(record) => match desk.create(&record).await {
            Answer::Done(stored) => membership.wrote(stored, asked),
            // The watch has yet to show whose it is.
            Answer::Overtaken => membership.failed(asked),
            Answer::Failed(error) => {
                complain(&error);
                membership.failed(asked);
            }
        },
        Move::Replace { record, version } => {
            match desk.replace(&record, &version).await {
                Answer::Done(stored) => membership.wrote(stored, asked),
                Answer::Overtaken => membership.was_overtaken(),
                Answer::Failed(error) => {
                    complain(&error);
                    membership.failed(asked);
                }
            }
        }
        Move::Remove { name, uid, version } => {
            remove(desk, membership, (&name, &uid, &version)).await;
        }
    }
}

async fn remove(
    desk: &Desk<'_>,
    membership: &mut Membership,
    (name, uid, version): (&str, &str, &str),
) {
    let asked = desk.shell.clock.now();
    let removed = desk.remove(name, (uid, version)).await;
    match removed.as_ref().map_err(failure::code) {
        Ok(()) | Err(Some(404)) => {
            tracing::info!(lease = name, "removed a Lease that nobody renewed");
            membership.removed(uid);
        }
        Err(Some(409)) => membership.was_renewed(uid, desk.shell.clock.now()),
        Err(_) => membership.failed(asked),
    }
}

/// Acts on what the membership has come to.
fn take_up(shell: &Shell, membership: &Membership) {
    let now = shell.clock.now();
    let share = membership.share(now);
    let count = membership.count(now);
    let is_gain = shell
        .tenure
        .replace(share.map_or(Claim::Nothing, Claim::Share));
    shell.stands(if shell.tenure.is_in_force() {
        Standing::Sharing(count)
    } else {
        Standing::Joining(count)
    });
    if is_gain {
        shell.wake_own();
    }
}
