//! Tests an agent whose API server does not answer.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use tokio::time::{Instant, sleep};

use crate::api_server::{Fixture, NODE, accepted, config_text};
use crate::line::Fate;
use crate::program::unique;

/// A file that is a signal, removed when this is dropped.
struct Signal(PathBuf);

impl Drop for Signal {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Signal {
    /// One that does not stand yet.
    fn of(fixture: &mut Fixture) -> Self {
        let path = std::env::temp_dir().join(unique("5spot-agent-signal-"));
        fixture.signal_file = Some(path.clone());
        Self(path)
    }

    fn begin(&self) {
        fs::write(&self.0, "").unwrap();
    }
}

/// The longest time between two of these, and from the last one until now.
fn longest_pause(sent: &[Instant]) -> Duration {
    let pairs = sent.windows(2).map(|pair| pair[1] - pair[0]);
    let last = sent.last().unwrap().elapsed();
    pairs.chain([last]).max().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_again_within_a_second_of_the_return_of_the_server() {
    for is_running_before in [true, false] {
        let mut fixture = Fixture::new().await;
        let signal = Signal::of(&mut fixture);
        let text = config_text(&["steam"]);
        fixture.configure(&text).await;
        if is_running_before {
            fixture.start_agent();
            fixture.wait_for_report(&accepted(&text)).await;
        }
        fixture.line.set(Fate::Refused);
        if !is_running_before {
            fixture.start_agent();
            // Long enough for long pauses between attempts.
            sleep(Duration::from_mins(5)).await;
        }
        signal.begin();
        sleep(Duration::from_secs(6)).await;
        let began = Instant::now();
        sleep(Duration::from_mins(2)).await;
        let attempts = fixture.line.sent(|_, uri| uri.starts_with("/api/v1/nodes"));
        let since: Vec<Instant> = attempts.into_iter().filter(|at| *at > began).collect();
        assert!(longest_pause(&since) <= Duration::from_millis(1100));
        assert!(since.len() < 500, "{}", since.len());
        let back = Instant::now();
        fixture.line.set(Fate::Answered);
        fixture.wait_for_request().await;
        let took = back.elapsed();
        assert!(took <= Duration::from_millis(1100), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_ends_right_after_its_list_is_tried_with_growing_pauses() {
    let mut fixture = Fixture::new().await;
    fixture.line.set(Fate::WithoutWatches);
    fixture.start_agent();
    sleep(Duration::from_mins(10)).await;
    let is_list = |method: &Method, uri: &str| {
        *method == Method::GET && uri.contains("fieldSelector") && uri.contains("nodes")
    };
    let lists = fixture.line.sent(is_list).len();
    // Half a minute between two, after some that are sooner. Two requests each.
    assert!((20..120).contains(&lists), "{lists}");
    // What happens meanwhile is still seen.
    let text = config_text(&["steam"]);
    fixture.configure(&text).await;
    fixture.wait_for_report(&accepted(&text)).await;
    assert!(fixture.client().get(NODE).await.is_ok());
}
