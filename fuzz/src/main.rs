//! `cargo run --release --bin fuzz -- TARGET --seconds N`: the fuzz targets of the engine, and the one
//! of the webhook.

mod review;

use std::process::ExitCode;

use kubemu_fuzz::{TARGETS, Target, program};

/// The target for what the webhook receives.
static REVIEW: Target = Target {
    name: "review",
    seeds: review::seeds,
    words: review::WORDS,
    feed: review::review,
};

fn main() -> ExitCode {
    program::run(TARGETS.iter().chain([&REVIEW]))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubemu_fuzz::FuzzRun;

    use super::REVIEW;

    #[test]
    fn nothing_breaks_reviews() {
        let run = FuzzRun {
            seed: 1,
            cases: Some(500),
            // Only the number of cases ends the run, on any machine.
            time: Duration::MAX,
            corpus: Vec::new(),
        };
        let counts = run.run(&REVIEW).unwrap();
        assert_eq!(counts.cases, 500);
        assert!(counts.answers > 4, "{counts:?}");
    }
}
