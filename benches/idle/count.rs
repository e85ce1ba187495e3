//! Requests by verb, resource and answer.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// How often each was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<(String, String, u16), u64>);

impl Counts {
    /// One more.
    pub(crate) fn add(&mut self, verb: &str, resource: &str, code: u16) {
        let kind = (verb.to_owned(), resource.to_owned(), code);
        *self.0.entry(kind).or_default() += 1;
    }

    /// The requests in a text of audit events, one a line, that came from a program whose name
    /// begins with `agent`.
    pub(crate) fn of(log: &str, agent: &str) -> Self {
        let mut counts = Self::default();
        let events = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for event in events {
            let text = |pointer: &str| {
                let found = event.pointer(pointer).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            if !text("/userAgent").starts_with(agent)
                || text("/stage") != "ResponseComplete"
            {
                continue;
            }
            let resource = match text("/objectRef/resource") {
                none if none.is_empty() => text("/requestURI"),
                resource => resource,
            };
            let code = event
                .pointer("/responseStatus/code")
                .and_then(Value::as_u64);
            let code = u16::try_from(code.unwrap_or_default()).unwrap_or_default();
            counts.add(&text("/verb"), &resource, code);
        }
        counts
    }

    /// Whether there is nothing but watches and renewals of Leases.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.keys().all(|(verb, resource, code)| {
            let is_watch = verb == "watch";
            let is_renewal = verb == "update" && resource == "leases" && *code == 200;
            is_watch || is_renewal
        })
    }

    /// How often an answer was of that code.
    pub(crate) fn answered(&self, code: u16) -> u64 {
        let those = self.0.iter().filter(|((_, _, other), _)| *other == code);
        those.map(|(_, count)| count).sum()
    }

    /// How many there were.
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

    fn event(agent: &str, verb: &str, resource: &str) -> String {
        serde_json::json!({
            "stage": "ResponseComplete", "userAgent": agent, "verb": verb,
            "objectRef": {"resource": resource}, "responseStatus": {"code": 200},
        })
        .to_string()
    }

    #[test]
    fn watches_and_renewals_are_idle_and_nothing_else_is() {
        let mut log = [
            event("5spot/0.1.0", "watch", "machines"),
            event("5spot/0.1.0", "update", "leases"),
            event("5spot/0.1.0", "update", "leases"),
            event("kubectl/1.36", "get", "pods"),
            "{half a li".to_owned(),
        ]
        .join("\n");
        let counts = Counts::of(&log, "5spot/");
        assert_eq!((counts.total(), counts.is_idle()), (3, true));
        log = format!("{log}\n{}", event("5spot/0.1.0", "get", "machines"));
        assert!(!Counts::of(&log, "5spot/").is_idle());
    }
}
