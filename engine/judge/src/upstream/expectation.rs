//! What is expected of each spec, and what is recorded of it, in `judge/upstream`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::report::Outcome;

/// The names of the specs that run, one per line.
const SPECS: &str = "judge/upstream/specs.txt";
/// The specs that the real server passes and the embedded one does not, with the reasons.
const DIFFERENCES: &str = "judge/upstream/differences.yaml";
/// Written by `cargo judge upstream --record`.
const RESULTS: &str = "judge/upstream/results.json";

/// A server that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// `kubemu serve`.
    Embedded,
    /// A kube-apiserver.
    Real,
}

impl Server {
    /// A name for files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Real => "real",
        }
    }
}

/// A reason for which specs do not pass.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    /// The reason.
    pub(crate) why: String,
    /// The names of the specs.
    pub(crate) specs: Vec<String>,
}

/// What became of a spec on both servers, in Ginkgo's words; empty if it has not run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Recorded {
    /// On kube-apiserver.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) real: String,
    /// The first line of why it does not pass on kube-apiserver.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
    /// On the embedded server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) ours: String,
}

/// All that is known of the specs.
pub(crate) struct Expectations {
    specs: Vec<String>,
    /// The reasons.
    pub(crate) differences: Vec<Difference>,
    /// The results by the names of the specs.
    pub(crate) recorded: BTreeMap<String, Recorded>,
}

impl Expectations {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is missing or not what it should be.
    pub(crate) fn read(root: &Path) -> Result<Self, Box<dyn Error>> {
        let read = |path: &str| {
            fs::read_to_string(root.join(path))
                .map_err(|error| format!("{path}: {error}"))
        };
        let specs = read(SPECS)?;
        Ok(Self {
            specs: specs.lines().map(str::to_owned).collect(),
            differences: serde_saphyr::from_str(&read(DIFFERENCES)?)?,
            recorded: serde_json::from_str(&read(RESULTS)?)?,
        })
    }

    /// What is known without the list of specs, which only a run needs.
    #[cfg(test)]
    pub(crate) fn of(
        differences: Vec<Difference>,
        recorded: BTreeMap<String, Recorded>,
    ) -> Self {
        Self {
            specs: Vec::new(),
            differences,
            recorded,
        }
    }

    /// The names that have one of the texts; all if there are no texts.
    pub(super) fn specs(&self, only: &[String]) -> Vec<String> {
        let is_wanted =
            |it: &&String| only.is_empty() || only.iter().any(|text| it.contains(text));
        self.specs.iter().filter(is_wanted).cloned().collect()
    }

    /// The outcomes that are not the expected ones.
    pub(super) fn faults(
        &self,
        server: Server,
        specs: &[String],
        outcomes: &BTreeMap<String, Outcome>,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        for spec in specs {
            let Some(outcome) = outcomes.get(spec) else {
                faults.push(format!("did not run: {spec}"));
                continue;
            };
            let is_explained = server == Server::Embedded && self.reason(spec).is_some();
            if outcome.has_passed() {
                if is_explained {
                    faults.push(format!("passes, against {DIFFERENCES}: {spec}"));
                }
            } else if self.is_expected(spec) && !is_explained {
                let Outcome { state, message, .. } = outcome;
                faults.push(format!("{state}: {spec}: {message}"));
            }
        }
        faults
    }

    /// Whether the real server passes a spec, or has not run it yet.
    fn is_expected(&self, spec: &str) -> bool {
        self.recorded
            .get(spec)
            .is_none_or(|it| it.real.is_empty() || it.real == "passed")
    }

    /// Why the embedded server does not pass a spec.
    pub(crate) fn reason(&self, spec: &str) -> Option<&str> {
        let found = self
            .differences
            .iter()
            .find(|it| it.specs.iter().any(|it| it == spec));
        found.map(|it| it.why.as_str())
    }

    /// Keeps the outcomes of a server beside those of other specs, without specs that are not listed
    /// any more.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn record(
        &mut self,
        root: &Path,
        server: Server,
        outcomes: &BTreeMap<String, Outcome>,
    ) -> Result<(), Box<dyn Error>> {
        // A run of the other server may have been recorded since this one began.
        self.recorded = serde_json::from_str(&fs::read_to_string(root.join(RESULTS))?)?;
        self.recorded.retain(|spec, _| self.specs.contains(spec));
        for (spec, outcome) in outcomes {
            let recorded = self.recorded.entry(spec.clone()).or_default();
            match server {
                Server::Embedded => recorded.ours.clone_from(&outcome.state),
                Server::Real => {
                    recorded.real.clone_from(&outcome.state);
                    recorded.why.clone_from(&outcome.message);
                }
            }
        }
        let text = serde_json::to_string_pretty(&self.recorded)?;
        Ok(fs::write(root.join(RESULTS), format!("{text}\n"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(real: &str, ours: &str, is_explained: bool) -> Vec<String> {
        let spec = "[sig-a] b".to_owned();
        let recorded = Recorded {
            real: real.to_owned(),
            ..Recorded::default()
        };
        let difference = Difference {
            why: "c".to_owned(),
            specs: vec![spec.clone()],
        };
        let expectations = Expectations {
            specs: vec![spec.clone()],
            differences: is_explained.then_some(difference).into_iter().collect(),
            recorded: BTreeMap::from([(spec.clone(), recorded)]),
        };
        let outcome = Outcome {
            state: ours.to_owned(),
            ..Outcome::default()
        };
        let outcomes = BTreeMap::from([(spec, outcome)]);
        expectations.faults(Server::Embedded, &expectations.specs(&[]), &outcomes)
    }

    #[test]
    fn what_the_real_server_passes_has_to_pass_or_to_have_a_reason() {
        assert_eq!(faults("passed", "passed", false).len(), 0);
        assert_eq!(faults("passed", "failed", false).len(), 1);
        assert_eq!(faults("passed", "failed", true).len(), 0);
        assert_eq!(faults("failed", "failed", false).len(), 0);
    }

    #[test]
    fn a_reason_for_what_passes_is_a_fault() {
        assert_eq!(faults("passed", "passed", true).len(), 1);
    }
}
