//! Translates errors of an API server, or of the connection to it, for the planner.

use fivespot_capi::{one_line, one_line_within};
use fivespot_plan::{Cause, Side, Unknown};
use fivespot_runtime::cache::WatchFailure;
pub(crate) use fivespot_runtime::http::error::code;
use fivespot_runtime::http::error::{self as http_error, status};
use kube::core::Status;

/// How many characters of an error of the management cluster are kept: the message of a policy or
/// a webhook often ends with the remedy. With the surrounding text it fits into a message of the
/// status.
const MAX_MANAGEMENT_MESSAGE: usize = 768;

/// The message of an error to keep and report: that of the API server if it responded, else the
/// client's, with its causes. One line of at most 256 characters, whatever the sender. For a
/// refused eviction it includes the disruption budget, which only a cause in the response names.
pub(crate) fn message(error: &kube::Error) -> String {
    one_line(&whole_message(error))
}

/// The same for a request to the cluster of `side`. Of the management cluster, which is trusted,
/// 768 characters are kept.
pub(crate) fn message_from(side: Side, error: &kube::Error) -> String {
    match side {
        Side::Management => {
            one_line_within(&whole_message(error), MAX_MANAGEMENT_MESSAGE)
        }
        Side::Workload => message(error),
    }
}

fn whole_message(error: &kube::Error) -> String {
    let message = http_error::message(error);
    let details = status(error).and_then(|status| status.details.as_ref());
    let mut causes = details.iter().flat_map(|details| &details.causes);
    match causes.find(|cause| cause.reason == "DisruptionBudget") {
        Some(budget) => format!("{message} {}", budget.message),
        None => message,
    }
}

/// Why a read failed.
pub(crate) fn unknown(error: &kube::Error) -> Unknown {
    let message = message(error);
    match code(error) {
        Some(403) => Unknown::Forbidden { message },
        _ => Unknown::Failed { message },
    }
}

/// Why a watch failed.
pub(crate) fn of_watch(failure: &WatchFailure) -> Unknown {
    let message = one_line(&failure.message);
    match failure.code {
        Some(403) => Unknown::Forbidden { message },
        Some(404) => Unknown::NotServed { message },
        _ => Unknown::Failed { message },
    }
}

/// The cause of a failed write.
pub(crate) fn cause(error: &kube::Error) -> Cause {
    let Some(status) = status(error) else {
        return Cause::Unavailable;
    };
    match status.code {
        403 if has_cause(status, "NamespaceTerminating") => Cause::NamespaceTerminating,
        403 if is_about_permissions(status) => Cause::Forbidden,
        400 | 403 | 413 | 422 => Cause::Rejected,
        404 => Cause::NotServed,
        _ => Cause::Unavailable,
    }
}

/// The type of an error, by which the metrics count it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ErrorType {
    /// The API server did not respond, or refused the request for another reason.
    KubeApi,
    /// The object or its kind does not exist.
    NotFound,
    /// The API server did not finish the request in time.
    Timeout,
    /// The API server rejected the object.
    Validation,
}

impl ErrorType {
    /// All types.
    pub(crate) const ALL: [Self; 4] = [
        Self::KubeApi,
        Self::NotFound,
        Self::Timeout,
        Self::Validation,
    ];

    /// The type of `error`.
    pub(crate) fn of(error: &kube::Error) -> Self {
        match code(error) {
            Some(404) => Self::NotFound,
            Some(408 | 504) => Self::Timeout,
            Some(400 | 413 | 422) => Self::Validation,
            _ => Self::KubeApi,
        }
    }

    /// The value of the label.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::KubeApi => "kube_api",
            Self::NotFound => "not_found",
            Self::Timeout => "timeout",
            Self::Validation => "validation",
        }
    }
}

fn has_cause(status: &Status, reason: &str) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == reason)
}

/// Admission plugins return 403 too. The message of an authorizer names the user and the verb:
/// `... is forbidden: User "x" cannot create resource "machines" in API group ...`.
fn is_about_permissions(status: &Status) -> bool {
    status.message.contains("User \"") && status.message.contains("\" cannot ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(code: u16, message: &str, causes: Value) -> kube::Error {
        let status = json!({
            "kind": "Status", "status": "Failure", "code": code, "message": message,
            "details": {"causes": causes},
        });
        kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn refusals_are_distinguished_by_code_and_message() {
        let role = "machines.cluster.x-k8s.io is forbidden: User \"a\" cannot create \
                    resource \"machines\" in API group \"cluster.x-k8s.io\"";
        let policy = "machines.cluster.x-k8s.io \"w\" is forbidden: \
                      ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        let ending = json!([{"reason": "NamespaceTerminating"}]);
        let rows = [
            (403, role, json!([]), Cause::Forbidden),
            (403, policy, json!([]), Cause::Rejected),
            (403, "is forbidden", ending, Cause::NamespaceTerminating),
            (400, "strict decoding error", json!([]), Cause::Rejected),
            (422, "is invalid", json!([]), Cause::Rejected),
            (404, "not found", json!([]), Cause::NotServed),
            (429, "too many requests", json!([]), Cause::Unavailable),
            (500, "internal error", json!([]), Cause::Unavailable),
        ];
        for (code, text, causes, expected) in rows {
            let error = refusal(code, text, causes);
            assert_eq!(cause(&error), expected, "{code} {text}");
            assert_eq!(message(&error), text);
        }
    }

    #[test]
    fn a_refused_eviction_names_the_disruption_budget() {
        let why = "The disruption budget db needs 2 healthy pods and has 2 currently";
        let causes = json!([{"reason": "DisruptionBudget", "message": why}]);
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        let error = refusal(429, text, causes);
        assert_eq!(message(&error), format!("{text} {why}"));
    }

    #[test]
    fn messages_are_one_line_of_at_most_256_characters() {
        let hostile = format!("a\u{1b}]0;pwned\u{7}b\r\n{}", "\u{e9}".repeat(1_000));
        let error = refusal(500, &hostile, json!([]));
        let text = message(&error);
        assert!(text.starts_with("a ]0;pwned b \u{e9}"), "{text}");
        assert_eq!(text.chars().count(), 256);
        let long = message_from(Side::Management, &error);
        assert_eq!(long.chars().count(), 768);
        assert_eq!(message_from(Side::Workload, &error), text);
        let Unknown::Failed { message } = unknown(&error) else {
            unreachable!();
        };
        assert_eq!(message, text);
    }

    #[test]
    fn a_long_refusal_of_the_management_cluster_keeps_its_end() {
        let quota = format!(
            "k0sworkerconfigs.bootstrap.cluster.x-k8s.io \"worker\" is forbidden: exceeded \
             quota: machines, {}limited: count/machines.cluster.x-k8s.io=4",
            "used: count/machines.cluster.x-k8s.io=4, ".repeat(8),
        );
        let error = refusal(403, &quota, json!([]));
        assert_eq!(message_from(Side::Management, &error), quota);
        let short = message_from(Side::Workload, &error);
        assert!(short.ends_with("used:…"), "{short}");
    }

    #[test]
    fn a_refusal_without_a_message_is_reported_by_its_code() {
        assert_eq!(
            message(&refusal(500, "", json!([]))),
            "the API server answered 500"
        );
    }

    #[test]
    fn a_failed_connection_is_reported_with_its_causes() {
        let refused = std::io::Error::other("connection refused");
        let error = kube::Error::Service(Box::new(refused));
        assert_eq!(cause(&error), Cause::Unavailable);
        assert!(message(&error).contains("connection refused"));
    }
}
