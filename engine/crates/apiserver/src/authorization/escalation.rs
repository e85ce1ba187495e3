//! Privilege escalation prevention of RBAC: users can only grant permissions that they have.

use std::collections::{BTreeSet, HashMap};

use http::Method;
use serde_json::Value;

use super::action::Action;
use super::decision::{aggregate_text, decide};
use super::rule::Rule;
use super::rule_index::{GROUP, RoleRef, RuleIndex};
use crate::call::Call;
use crate::kind::Write;
use crate::meta;
use crate::route::Target;
use crate::status::{Reason, Status};
use crate::user::{MASTERS, User};

/// The maximum number of the parts of a role's rules that are compared with the rules of a user.
/// Kubernetes has no limit, and no memory left. The roles of a cluster have some thousand.
const MAX_PARTS: usize = 100_000;

/// Rejects a role, or a binding of a role, that would grant more than the writer has; the
/// verbs `escalate` and `bind` lift this (k8s.io/kubernetes/pkg/registry/rbac).
///
/// # Errors
/// 403 that lists the permissions that the writer does not have, or for rules of more than
/// [`MAX_PARTS`] parts, 404 for a role that is
/// missing, 500 for a role of another kind.
pub(crate) fn check_escalation(
    rules: &RuleIndex,
    call: &Call,
    target: &Target,
    write: &Write<'_>,
) -> Result<(), Status> {
    let Write { object, old, .. } = *write;
    let resource = &target.resource;
    let user = &call.user;
    if resource.storage.group != GROUP || user.is_in(MASTERS) {
        return Ok(());
    }
    if old.is_some_and(|old| is_only_mutating_gc_fields(object, old)) {
        return Ok(());
    }
    let check = EscalationCheck {
        rules,
        user,
        target,
        name: meta::name(object),
    };
    if resource.plural.ends_with("bindings") {
        check.binding(object)
    } else {
        // The path of a POST has no name.
        let name = if call.method == Method::POST {
            ""
        } else {
            &target.name
        };
        check.role(object, old, name)
    }
}

fn is_only_mutating_gc_fields(object: &Value, old: &Value) -> bool {
    let mut copy = object.clone();
    for key in ["ownerReferences", "finalizers", "managedFields"] {
        meta::copy(old, &mut copy, key);
    }
    copy == *old
}

struct EscalationCheck<'a> {
    rules: &'a RuleIndex,
    user: &'a User,
    target: &'a Target,
    name: &'a str,
}

impl EscalationCheck<'_> {
    /// Checks a role; `name` is that in the path of the request.
    fn role(&self, role: &Value, old: Option<&Value>, name: &str) -> Result<(), Status> {
        let resource = &self.target.resource;
        let escalate = Action {
            verb: "escalate".to_owned(),
            namespace: self.target.namespace.clone(),
            group: GROUP.to_owned(),
            resource: resource.plural.clone(),
            name: name.to_owned(),
            ..Action::default()
        };
        if decide(self.rules, self.user, &escalate).allowed {
            return Ok(());
        }
        self.check_permissions(&Rule::all_of(role))?;
        let aggregates = |role: &Value| {
            let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
            selectors.is_some_and(|it| !it.is_empty())
        };
        if (aggregates(role) || old.is_some_and(aggregates))
            && self.check_permissions(&cluster_admin_rules()).is_err()
        {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(Status::forbidden(resource, self.name, why));
        }
        Ok(())
    }

    fn binding(&self, binding: &Value) -> Result<(), Status> {
        let role = RoleRef::read(binding);
        // Kubernetes validates the binding after this, and has no status for the error.
        let unsupported = |why| Status::new(500, Reason::Unknown, why);
        let resource = role.resource().map_err(unsupported)?;
        let group = binding["roleRef"]["apiGroup"].as_str().unwrap_or(GROUP);
        let bind = Action {
            verb: "bind".to_owned(),
            namespace: self.target.namespace.clone(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: role.name.clone(),
            ..Action::default()
        };
        if decide(self.rules, self.user, &bind).allowed {
            return Ok(());
        }
        let rules = self.rules.rules(&role, &self.target.namespace);
        // Kubernetes names the resource of the request, although the role is missing.
        let missing = |_| Status::not_found(&self.target.resource, &role.name);
        let rules = rules.map_err(missing)?;
        let rules: Vec<Rule> = rules.iter().map(|it| Rule::clone(it)).collect();
        self.check_permissions(&rules)
    }

    /// Checks that the user has all permissions of `rules`.
    fn check_permissions(&self, rules: &[Rule]) -> Result<(), Status> {
        let number = rules.iter().map(Rule::number_of_parts);
        let number = number.fold(0, usize::saturating_add);
        if number > MAX_PARTS {
            let why = format!(
                "the rules have {number} combinations of an API group, a resource, a verb and a \
                 name; only a user with the verbs escalate and bind can grant more than \
                 {MAX_PARTS}"
            );
            return Err(Status::forbidden(&self.target.resource, self.name, &why));
        }
        let mut granted = Vec::new();
        let mut errors = Vec::new();
        let grants = self.rules.grants(self.user, &self.target.namespace);
        for grant in grants {
            match grant {
                Ok(grant) => granted.push(grant.rule),
                Err(error) => errors.push(error),
            }
        }
        let parts = rules.iter().flat_map(Rule::parts);
        let missing: Vec<Rule> = parts
            .filter(|part| !granted.iter().any(|it| it.covers(part)))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let lines: BTreeSet<String> =
            merge_verbs(missing).iter().map(Rule::compact).collect();
        let lines: Vec<String> = lines.into_iter().collect();
        let groups: Vec<String> = self
            .user
            .groups
            .iter()
            .map(|it| format!("{it:?}"))
            .collect();
        let mut why = format!(
            "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently \
             held:\n{}",
            self.user.name,
            groups.join(" "),
            lines.join("\n")
        );
        if !errors.is_empty() {
            why = format!("{why}; resolution errors: [{}]", aggregate_text(&errors));
        }
        Err(Status::forbidden(&self.target.resource, self.name, &why))
    }
}

/// The rules of cluster-admin.
fn cluster_admin_rules() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule {
            verbs: all(),
            groups: all(),
            resources: all(),
            ..Rule::default()
        },
        Rule {
            verbs: all(),
            paths: all(),
            ..Rule::default()
        },
    ]
}

/// Merges the verbs of parts with the same resource and name.
fn merge_verbs(parts: Vec<Rule>) -> Vec<Rule> {
    let mut all: Vec<Rule> = Vec::new();
    let mut places = HashMap::new();
    for part in parts {
        if part.paths.is_empty() {
            let Rule {
                groups,
                resources,
                names,
                ..
            } = part.clone();
            let place = *places
                .entry((groups, resources, names))
                .or_insert(all.len());
            if let Some(found) = all.get_mut(place) {
                found.verbs.extend(part.verbs);
                continue;
            }
        }
        all.push(part);
    }
    all
}
