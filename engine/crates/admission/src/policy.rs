//! `ValidatingAdmissionPolicy` and `ValidatingAdmissionPolicyBinding`: the requests they match,
//! and their decisions.
//!
//! ```
//! use std::sync::Arc;
//!
//! use kubemu_admission::KubeVersion;
//! use kubemu_admission::policy::{
//!     Binding, GroupVersionKind, Policies, Policy, Request,
//! };
//! use serde_json::json;
//!
//! let policy = json!({
//!     "metadata": {"name": "no-red"},
//!     "spec": {
//!         "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"],
//!             "apiVersions": ["*"], "resources": ["widgets"], "operations": ["CREATE"]}]},
//!         "validations": [{"expression": "object.spec.color != 'red'",
//!             "message": "must not be red"}],
//!     },
//! });
//! let binding = json!({
//!     "metadata": {"name": "everywhere"},
//!     "spec": {"policyName": "no-red", "validationActions": ["Deny"]},
//! });
//! let policies = Policies::new(
//!     [Arc::new(Policy::compile(&policy, KubeVersion::default()).expect("it is valid"))],
//!     [Arc::new(Binding::compile(&binding).expect("it is valid"))],
//! );
//!
//! let object = json!({"metadata": {"name": "a"}, "spec": {"color": "red"}});
//! let kind = GroupVersionKind { group: "example.com", version: "v1", kind: "Widget" };
//! let request = Request::create(kind, "widgets", &object);
//! let decision = policies.decide(&request, &());
//! assert_eq!(
//!     decision.denied().expect("it is refused").message,
//!     "widgets.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'no-red' with \
//!      binding 'everywhere' denied request: must not be red"
//! );
//! ```

mod authorize;
mod binding;
mod decide;
mod definition;
mod evaluate;
mod expression;
mod fields;
mod known_kind;
mod matching;
mod mutate;
mod mutating_policy;
mod patch;
mod registration;
mod request;
mod resolver;
mod scope;
mod type_check;
mod webhook;

pub use authorize::{Access, Authorizer, Permission, Target};
pub use binding::Binding;
pub use decide::{Decision, Denial, Evaluation, Policies};
pub use definition::Policy;
pub use known_kind::KnownKind;
pub use mutate::{MutatingPolicies, PatchError, Patcher, Reinvocation};
pub use mutating_policy::MutatingPolicy;
pub use request::{GroupVersionKind, GroupVersionResource, Operation, Request, User};
pub use resolver::{ParamKind, Resolver};
pub use type_check::ExpressionWarning;
pub use webhook::{Invocation, Webhook};
