//! The operator alone, against the cluster of a kubeconfig, until it is interrupted:
//!
//! ```sh
//! cargo run -p fivespot-controller --example operator -- --kubeconfig PATH
//! ```
//!
//! It is the shortest program around [`run`]: no leader election, no metrics, no probes.
//! Each transition and each step is a line on standard output.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use fivespot_clock::Clock;
use fivespot_controller::{Observe, Options, StepTaken, Transition, run};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

struct Told;

impl Observe for Told {
    fn transition(&self, transition: &Transition) {
        let from = transition.from.map(|from| format!("{from:?}"));
        println!(
            "{} {} {} -> {:?} {}",
            transition.at,
            transition.key,
            from.unwrap_or_default(),
            transition.to,
            transition.message
        );
    }

    fn step(&self, taken: &StepTaken) {
        println!(
            "{} {} {:?} {} {}",
            taken.at,
            taken.key,
            taken.step,
            taken.object,
            taken.refusal.as_deref().unwrap_or("done")
        );
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let kubeconfig = match words.as_slice() {
        [] => Kubeconfig::read()?,
        [flag, path] if flag == "--kubeconfig" => {
            Kubeconfig::read_from(PathBuf::from(path))?
        }
        _ => return Err("usage: operator [--kubeconfig PATH]".into()),
    };
    let choice = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &choice).await?;
    // The controller retries by itself, and needs to see each refusal.
    config.default_retry = false;
    let mut options = Options::new(Client::try_from(config)?, Clock::system());
    options.observe = Arc::new(Told);
    tokio::select! {
        never = run(options) => match never {},
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}
