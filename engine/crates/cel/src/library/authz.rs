//! The authorizer library: from Kubernetes 1.27 on, with selectors from 1.31 on.
//!
//! The functions are declared here; the objects of the host implement them.

use super::{Row, Run, member, no_such_overload};
use crate::{RunError, Value};

macro_rules! rows {
    ($(($function:literal, $id:literal, $signature:expr)),* $(,)?) => {
        &[$(
            member($function, $id, $signature, const {
                let run: Run = |args| ask($function, args);
                run
            }),
        )*]
    };
}

/// A signature with the full type names.
macro_rules! signature {
    ($from:literal $(, $argument:literal)* => $authorization:literal) => {
        concat!(
            "kubernetes.authorization.", $from, $(", ", $argument,)*
            " -> kubernetes.authorization.", $authorization,
        )
    };
    ($from:literal -> $result:literal) => {
        concat!("kubernetes.authorization.", $from, " -> ", $result)
    };
}

pub(super) const ROWS: &[Row] = rows![
    (
        "path",
        "authorizer_path",
        signature!("Authorizer", "string" => "PathCheck")
    ),
    (
        "group",
        "authorizer_group",
        signature!("Authorizer", "string" => "GroupCheck")
    ),
    (
        "serviceAccount",
        "authorizer_serviceaccount",
        signature!("Authorizer", "string", "string" => "Authorizer")
    ),
    (
        "resource",
        "groupcheck_resource",
        signature!("GroupCheck", "string" => "ResourceCheck")
    ),
    (
        "subresource",
        "resourcecheck_subresource",
        signature!("ResourceCheck", "string" => "ResourceCheck")
    ),
    (
        "namespace",
        "resourcecheck_namespace",
        signature!("ResourceCheck", "string" => "ResourceCheck")
    ),
    (
        "name",
        "resourcecheck_name",
        signature!("ResourceCheck", "string" => "ResourceCheck")
    ),
    (
        "check",
        "pathcheck_check",
        signature!("PathCheck", "string" => "Decision")
    ),
    (
        "check",
        "resourcecheck_check",
        signature!("ResourceCheck", "string" => "Decision")
    ),
    (
        "errored",
        "decision_errored",
        signature!("Decision" -> "bool")
    ),
    (
        "error",
        "decision_error",
        signature!("Decision" -> "string")
    ),
    (
        "allowed",
        "decision_allowed",
        signature!("Decision" -> "bool")
    ),
    (
        "reason",
        "decision_reason",
        signature!("Decision" -> "string")
    ),
];

pub(super) const SELECTOR_ROWS: &[Row] = rows![
    (
        "fieldSelector",
        "authorizer_fieldselector",
        signature!("ResourceCheck", "string" => "ResourceCheck")
    ),
    (
        "labelSelector",
        "authorizer_labelselector",
        signature!("ResourceCheck", "string" => "ResourceCheck")
    ),
];

fn ask<'v>(function: &str, args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Abstract(receiver), arguments @ ..] => receiver.call(function, arguments),
        _ => no_such_overload(),
    }
}
