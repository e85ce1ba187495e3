//! Requests by verb, resource and status code.

use std::collections::BTreeMap;
use std::fmt;

use benches::Entry;

/// The number of requests of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<(String, String, u16), u64>);

impl Counts {
    /// Counts one request.
    pub(crate) fn add(&mut self, verb: &str, resource: &str, code: u16) {
        let kind = (verb.to_owned(), resource.to_owned(), code);
        *self.0.entry(kind).or_default() += 1;
    }

    /// The requests of a program whose name begins with `agent`.
    pub(crate) fn of(entries: &[Entry], agent: &str) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            if entry.agent.starts_with(agent) {
                counts.add(&entry.verb, &entry.resource, entry.code);
            }
        }
        counts
    }

    /// Whether there are only watches and renewals of Leases.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.keys().all(|(verb, resource, code)| {
            let is_watch = verb == "watch";
            let is_renewal = verb == "update" && resource == "leases" && *code == 200;
            is_watch || is_renewal
        })
    }

    /// The number of responses with this code.
    pub(crate) fn answered(&self, code: u16) -> u64 {
        let those = self.0.iter().filter(|((_, _, other), _)| *other == code);
        those.map(|(_, count)| count).sum()
    }

    /// The total number of requests.
    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<8} {:<44} {:>4} {:>8}",
            "VERB", "RESOURCE", "CODE", "COUNT"
        )?;
        for ((verb, resource, code), count) in &self.0 {
            writeln!(f, "{verb:<8} {resource:<44} {code:>4} {count:>8}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(agent: &str, verb: &str, resource: &str) -> Entry {
        let line = serde_json::json!({
            "stage": "ResponseComplete", "userAgent": agent, "verb": verb,
            "objectRef": {"resource": resource}, "responseStatus": {"code": 200},
        });
        Entry::read(&line.to_string()).expect("an event")
    }

    #[test]
    fn only_watches_and_renewals_are_idle() {
        let mut entries = vec![
            entry("5spot/0.1.0", "watch", "machines"),
            entry("5spot/0.1.0", "update", "leases"),
            entry("5spot/0.1.0", "update", "leases"),
            entry("kubectl/1.36", "get", "pods"),
        ];
        let counts = Counts::of(&entries, "5spot/");
        assert_eq!((counts.total(), counts.is_idle()), (3, true));
        entries.push(entry("5spot/0.1.0", "get", "machines"));
        assert!(!Counts::of(&entries, "5spot/").is_idle());
    }
}
