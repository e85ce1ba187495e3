//! Sends the corpus to a real API server and records its responses.

use std::fs;
use std::time::Duration;

use kubemu_judge::record::run::{RetryMode, Runner};
use kubemu_judge::record::{BoxError, agreement, corpus, difference, fixture, folder};

use crate::client;

/// The pause between two attempts of a request that waits for a result.
const PAUSE: Duration = Duration::from_millis(50);

/// Records the responses to the cases whose keys begin with one of the texts, or to all, and measures
/// the agreement.
///
/// # Errors
/// A request fails.
pub(crate) async fn record(wanted: &[String]) -> Result<(), BoxError> {
    let folder = folder();
    let client = client().await?;
    let version = client.apiserver_version().await?;
    let minor = &format!("{}.{}", version.major, version.minor);
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
        return agree().await;
    }
    Err(errors.join("\n").into())
}

/// Measures how far the embedded server agrees with the recorded responses, and keeps the numbers for the
/// documentation.
///
/// # Errors
/// The recorded responses cannot be read.
pub(crate) async fn agree() -> Result<(), BoxError> {
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
    println!("`cargo judge gen` writes the numbers to the documentation");
    Ok(())
}
