//! The result of a check, printed on one line.

use std::fmt;

use fivespot_api::verdict::Verdict;
use serde::Serialize;

use crate::plain;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckResult {
    /// As expected.
    Ok,
    /// 5-Spot works, but not everything that is configured.
    Warning,
    /// 5-Spot does not work, in part or at all.
    Error,
    /// The check could not be completed.
    Unknown,
}

impl CheckResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

/// An object with the verdict about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Judged {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) verdict: Verdict,
}

/// A finding of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    check: &'static str,
    result: CheckResult,
    message: String,
    #[serde(rename = "whatToDo", skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The machines that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machines: Vec<Judged>,
    /// The ScheduledCapacities that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    capacities: Vec<Judged>,
    #[serde(skip)]
    is_missing: bool,
}

impl Finding {
    fn new(check: &'static str, result: CheckResult, message: impl Into<String>) -> Self {
        Self {
            check,
            result,
            message: message.into(),
            remedy: None,
            machines: Vec::new(),
            capacities: Vec::new(),
            is_missing: false,
        }
    }

    /// A check that succeeded.
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckResult::Ok, message)
    }

    /// A check of the operator's permissions that the server does not evaluate for this user.
    pub(super) fn not_evaluated(check: &'static str, what: &str, why: &str) -> Self {
        Self::unknown(check, format!("{what} is not known: {why}"))
            .remedy("run the command as a user who may create SubjectAccessReviews")
    }

    /// Something that is configured does not work.
    pub(super) fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckResult::Warning, message)
    }

    /// 5-Spot does not work.
    pub(super) fn error(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckResult::Error, message)
    }

    /// The API server refused a request of the check.
    pub(super) fn unknown(check: &'static str, error: impl fmt::Display) -> Self {
        Self::new(check, CheckResult::Unknown, error.to_string())
            .remedy("run the command as a user who may read it")
    }

    /// One finding in place of those about objects of one kind that could not be read, which differ
    /// only in the name; it is where the first of them was. The others are kept.
    pub(super) fn together(findings: Vec<Self>) -> Vec<Self> {
        let is_unknown = |it: &Self| it.result == CheckResult::Unknown;
        let unknown = findings.iter().filter(|it| is_unknown(it)).count();
        let mut is_first = true;
        let kept = findings.into_iter().filter_map(|mut it| {
            if is_unknown(&it) && unknown > 1 {
                if !std::mem::take(&mut is_first) {
                    return None;
                }
                it.message =
                    format!("{unknown} could not be read, such as {}", it.message);
            }
            Some(it)
        });
        kept.collect()
    }

    /// Adds what to do about it.
    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds the machines that it is about.
    pub(super) fn about(mut self, machines: Vec<Judged>) -> Self {
        self.machines = machines;
        self
    }

    /// Adds the ScheduledCapacities that it is about.
    pub(super) fn about_capacities(mut self, capacities: Vec<Judged>) -> Self {
        self.capacities = capacities;
        self
    }

    /// Marks the object as missing.
    pub(super) fn missing(mut self) -> Self {
        self.is_missing = true;
        self
    }

    /// Whether the object is missing.
    pub(super) fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// The message with what to do about it, on one line.
    fn text(&self) -> String {
        let message = plain::lines(&self.message).replace('\n', " ");
        match &self.remedy {
            Some(remedy) => format!("{message}; {remedy}"),
            None => message,
        }
    }

    /// The text, if 5-Spot does not work.
    pub(super) fn error_text(&self) -> Option<String> {
        (self.result == CheckResult::Error).then(|| self.text())
    }

    /// Whether 5-Spot works without further action.
    pub(super) fn is_ok_or_warning(&self) -> bool {
        matches!(self.result, CheckResult::Ok | CheckResult::Warning)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.result.as_str();
        write!(f, "{result:<8} {:<11} {}", self.check, self.text())
    }
}

/// The last line: the number of findings of each result.
pub(super) fn summary(findings: &[Finding]) -> String {
    let count =
        |result: CheckResult| findings.iter().filter(|it| it.result == result).count();
    let (errors, unknown) = (count(CheckResult::Error), count(CheckResult::Unknown));
    let warnings = count(CheckResult::Warning);
    if errors + unknown + warnings == 0 {
        return "No problems found.".to_owned();
    }
    format!("{errors} errors, {warnings} warnings, {unknown} not checked")
}
