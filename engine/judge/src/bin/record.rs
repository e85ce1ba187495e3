//! Sends the corpus to a real API server and records its responses. See `cargo xtask record`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubemu_judge::record::run::{RetryMode, Runner};
use kubemu_judge::record::{BoxError, agreement, corpus, difference, fixture, folder};

const USAGE: &str = "usage: record MINOR KUBECONFIG [AREA/CASE...] | record --agreement";

/// The pause between two attempts of a request that waits for a result.
const PAUSE: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime
        .map_err(BoxError::from)
        .and_then(|runtime| runtime.block_on(run(&words)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: &[String]) -> Result<(), BoxError> {
    match words {
        [word] if word == "--agreement" => agree().await,
        [minor, kubeconfig, wanted @ ..] => {
            let client = client(Path::new(kubeconfig)).await?;
            record(&client, minor, wanted).await
        }
        _ => Err(USAGE.into()),
    }
}

async fn client(kubeconfig: &Path) -> Result<Client, BoxError> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    // A response with `Retry-After` is recorded like any other.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

async fn record(client: &Client, minor: &str, wanted: &[String]) -> Result<(), BoxError> {
    let folder = folder();
    let mut errors = Vec::new();
    let mut count = 0;
    for case in corpus::read(&folder.join("corpus"))? {
        if !wanted.is_empty() && !wanted.iter().any(|it| case.key().starts_with(it)) {
            continue;
        }
        let mut runner = Runner::new(client.clone(), RetryMode::Pause(PAUSE), &case);
        let answers = runner.run().await;
        runner.clear().await?;
        match answers {
            Ok(answers) => {
                count += answers.len();
                fixture::write(&fixture::path(&folder, minor, &case), &answers)?;
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    println!("recorded {count} answers of Kubernetes {minor}");
    if errors.is_empty() {
        return Ok(());
    }
    Err(errors.join("\n").into())
}

/// Measures the agreement of the embedded server, and writes the numbers to a file.
async fn agree() -> Result<(), BoxError> {
    let folder = folder();
    let differences = difference::read(&folder.join("differences.yaml"))?;
    let measured = agreement::measure(&differences).await?;
    let text = agreement::text(&measured.summary(&differences));
    fs::write(agreement::path(&folder), text)?;
    println!("{}", measured.unexpected.join("\n"));
    for answer in measured.idle(&differences) {
        println!("no longer different: {answer}");
    }
    println!("{} answers differ unexpectedly", measured.unexpected.len());
    Ok(())
}
