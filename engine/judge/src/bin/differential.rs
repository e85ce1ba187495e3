//! Sends generated requests to a real API server and to the embedded one. See
//! `cargo xtask differential --server`.

use std::process::ExitCode;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubemu_judge::record::BoxError;
use kubemu_judge::server::{self, Plan};

const USAGE: &str = "usage: differential KUBECONFIG [--cases N] [--from I] [--seed S] \
    [--case I] [--show K] [--kind KIND]... [--record]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime
        .map_err(BoxError::from)
        .and_then(|runtime| runtime.block_on(run(&words)));
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(verdicts) => {
            eprintln!("{verdicts} verdicts differ");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(words: &[String]) -> Result<u64, BoxError> {
    let [kubeconfig, words @ ..] = words else {
        return Err(USAGE.into());
    };
    let plan = Plan::read(words)?;
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    // A response with `Retry-After` is compared like any other.
    config.default_retry = false;
    server::run(Client::try_from(config)?, &plan).await
}
