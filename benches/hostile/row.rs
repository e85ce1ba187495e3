//! One row for each threat.

use std::net::Ipv4Addr;
use std::time::Duration;

use kubemu_clock::Clock;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::child::{Child, free_address};
use crate::clients::{self, Webhook};
use crate::management::Management;
use crate::workload::{ResponseMode, Workload};
use crate::{Args, BoxError, RowResult};

/// How long after an edge the measurement waits for the machine.
const WAIT_AFTER_EDGE: Duration = Duration::from_secs(6);
/// How long reviews are sent to the webhook.
const REVIEW_DURATION: Duration = Duration::from_secs(30);

/// The threat to the operator or the webhook.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Threat {
    /// None, for comparison.
    Baseline,
    /// 100 objects of 1.04 MB of random text.
    LargeObjects,
    /// Six objects of 1.4 MB of `0,`.
    DenseObjects,
    /// A hostile workload cluster.
    Workload(ResponseMode),
    /// 64 connections to the operator's health port that send nothing.
    SilentOperator,
    /// 64 connections to the webhook's health port that send nothing.
    SilentWebhook,
    /// 256 HTTP/2 connections to the webhook that send no request.
    Idle,
    /// 16 reviews that do not end.
    Slow,
    /// 4 dense reviews of 6.5 MiB at a time.
    Dense,
    /// 16 reviews with 40,000 annotations at a time, all from the address of the honest client.
    Annotated,
    /// The same, each from an address of its own.
    AnnotatedFromMany,
}

impl Threat {
    pub(crate) const ALL: [Self; 13] = [
        Self::Baseline,
        Self::LargeObjects,
        Self::DenseObjects,
        Self::Workload(ResponseMode::Endless),
        Self::Workload(ResponseMode::LargeNodes),
        Self::Workload(ResponseMode::LargeErrors),
        Self::SilentOperator,
        Self::SilentWebhook,
        Self::Idle,
        Self::Slow,
        Self::Dense,
        Self::Annotated,
        Self::AnnotatedFromMany,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Baseline => "operator: no threat",
            Self::LargeObjects => "operator: 100 objects of 1 MiB",
            Self::DenseObjects => "operator: 6 dense objects of 1.4 MB",
            Self::Workload(ResponseMode::Endless) => "operator: endless pages",
            Self::Workload(ResponseMode::LargeNodes) => "operator: 1,000 Nodes of 250 KB",
            Self::Workload(ResponseMode::LargeErrors) => "operator: errors of 20 MiB",
            Self::SilentOperator => "operator: 64 silent connections",
            Self::SilentWebhook => "webhook: 64 silent connections",
            Self::Idle => "webhook: 256 idle HTTP/2 connections",
            Self::Slow => "webhook: 16 slow bodies",
            Self::Dense => "webhook: 4 dense reviews of 6.5 MiB at a time",
            Self::Annotated => "webhook: 16 times 40,000 annotations",
            Self::AnnotatedFromMany => "webhook: the same from 16 addresses",
        }
    }
}

/// Measures one row.
pub(crate) async fn measure(args: &Args, threat: Threat) -> Result<RowResult, BoxError> {
    match threat {
        Threat::Baseline
        | Threat::LargeObjects
        | Threat::DenseObjects
        | Threat::Workload(_)
        | Threat::SilentOperator => operator(args, threat).await,
        Threat::SilentWebhook
        | Threat::Idle
        | Threat::Slow
        | Threat::Dense
        | Threat::Annotated
        | Threat::AnnotatedFromMany => webhook(args, threat).await,
    }
}

async fn operator(args: &Args, threat: Threat) -> Result<RowResult, BoxError> {
    let kubeconfig = args.folder.join("management.kubeconfig");
    let management = Management::start(&kubeconfig).await?;
    match threat {
        Threat::LargeObjects => {
            for number in 0..100 {
                let spec = json!({"text": random_text(number, 1_040_000)});
                management.add_large(number, spec).await?;
            }
        }
        Threat::DenseObjects => {
            let dense = json!({"list": vec![0; 700_000]});
            for number in 0..6 {
                management.add_large(number, dense.clone()).await?;
            }
        }
        _ => {}
    }
    let workload = match threat {
        Threat::Workload(mode) => Some(Workload::start(mode).await?),
        _ => None,
    };
    if let Some(workload) = &workload {
        management.add_victim(&workload.kubeconfig).await?;
    }
    let edge = management.add_unrelated().await?;
    let arguments = [
        "--allow-loopback-workload-server",
        "--kubeconfig",
        &kubeconfig.display().to_string(),
    ]
    .map(str::to_owned);
    let log = args.folder.join("operator.log");
    let mut child = Child::start(args, &args.controller, &arguments, &log).await?;
    let _clients = match threat {
        Threat::SilentOperator => clients::silent(64, child.health()),
        _ => JoinSet::new(),
    };
    if workload.is_some() {
        management.join_victim().await?;
    }
    let left = edge.duration_since(Clock::system().now());
    sleep(Duration::try_from(left).unwrap_or_default() + WAIT_AFTER_EDGE).await;
    Ok(RowResult {
        name: threat.name().to_owned(),
        memory: child.peak(),
        health: child.worst_health(),
        wait: management.lateness(edge),
    })
}

async fn webhook(args: &Args, threat: Threat) -> Result<RowResult, BoxError> {
    let (address, folder) = (free_address()?, args.folder.join("certificate"));
    let webhook = Webhook::prepare(address, &folder)?;
    let arguments = [
        "--certificate-dir",
        &folder.display().to_string(),
        "--port",
        &address.port().to_string(),
    ]
    .map(str::to_owned);
    let log = args.folder.join("webhook.log");
    let mut child = Child::start(args, &args.webhook, &arguments, &log).await?;
    let _clients = match threat {
        Threat::SilentWebhook => clients::silent(64, child.health()),
        Threat::Idle => clients::idle(256, &webhook),
        Threat::Slow => clients::slow(16, &webhook),
        Threat::Dense => clients::dense(4, &webhook).await?,
        Threat::Annotated => clients::annotated(&[Ipv4Addr::LOCALHOST; 16], &webhook),
        Threat::AnnotatedFromMany => {
            let addresses = (2..=17).map(|number| Ipv4Addr::new(127, 0, 0, number));
            clients::annotated(&addresses.collect::<Vec<_>>(), &webhook)
        }
        _ => JoinSet::new(),
    };
    let end = tokio::time::Instant::now() + REVIEW_DURATION;
    let mut wait = Some(Duration::ZERO);
    while tokio::time::Instant::now() < end {
        // One review without a response makes the result `None`.
        wait = wait
            .zip(webhook.send_review().await)
            .map(|(one, other)| one.max(other));
        sleep(Duration::from_millis(250)).await;
    }
    Ok(RowResult {
        name: threat.name().to_owned(),
        memory: child.peak(),
        health: child.worst_health(),
        wait,
    })
}

/// Incompressible text. The same for equal seeds.
fn random_text(seed: u32, length: usize) -> Value {
    const LETTERS: &[u8] =
        b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    let mut state = u64::from(seed) + 1;
    let letters = (0..length).map(|_| {
        // A linear congruential generator, with the constants of Knuth's MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let place = usize::try_from(state >> 58).unwrap_or_default();
        char::from(LETTERS[place % LETTERS.len()])
    });
    letters.collect::<String>().into()
}
