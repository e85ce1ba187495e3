//! The admission chain: mutating plugins, then validating ones, by name.

mod pod;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fivespot_admission::policy::{
    self, Binding, Decision, GroupVersionKind, GroupVersionResource, Operation,
    ParamKind, Policies, Policy, Request, User, World,
};
use fivespot_admission::{FieldError, KubeVersion};
use serde_json::{Value, json};

use crate::authorization::Authorizer;
use crate::call::Call;
use crate::conversion::Conversion;
use crate::namespace;
use crate::resource::{GroupResource, Resource, Subresource};
use crate::route::Target;
use crate::start::StartError;
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status};
use crate::store::{Change, Key, Range};
use crate::verb::delete;

/// Makes the namespace of an object where it is missing; off unless enabled.
const PROVISION: &str = "NamespaceAutoProvision";
/// Keeps objects out of namespaces that are missing or on their way out.
const LIFECYCLE: &str = "NamespaceLifecycle";
/// Asks the ValidatingAdmissionPolicies.
const POLICY: &str = "ValidatingAdmissionPolicy";

/// Lets pods stay for a while on nodes that do not answer.
const TOLERATIONS: &str = "DefaultTolerationSeconds";
/// Gives pods the priority of their class.
const PRIORITY: &str = "Priority";
/// Gives pods a service account.
const ACCOUNT: &str = "ServiceAccount";

/// Every plugin, in alphabetical order, and whether it is on by default.
const KNOWN: [(&str, bool); 6] = [
    (TOLERATIONS, true),
    (PROVISION, false),
    (LIFECYCLE, true),
    (PRIORITY, true),
    (ACCOUNT, true),
    (POLICY, true),
];

/// Every plugin's name, for who has named another.
pub(crate) fn known() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

/// The plugins that are on, and the policies one of them asks.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    on: BTreeSet<&'static str>,
    policies: BTreeMap<Arc<str>, Arc<Policy>>,
    bindings: BTreeMap<Arc<str>, Arc<Binding>>,
    decider: Arc<Policies>,
}

/// What is asked: the request, what it is about, and what it would do.
pub(crate) type Asked<'a> = (&'a Call, &'a Target, Operation);

impl Chain {
    /// The default plugins, more and fewer.
    ///
    /// # Errors
    /// For a name that no plugin has, and for one that is in both lists.
    pub(crate) fn new(enable: &[String], disable: &[String]) -> Result<Self, StartError> {
        let find = |name: &String| {
            let found = KNOWN.iter().find(|(known, _)| known == name);
            found
                .map(|(known, _)| *known)
                .ok_or_else(|| StartError::UnknownPlugin(name.clone()))
        };
        if let Some(name) = enable.iter().find(|it| disable.contains(it)) {
            return Err(StartError::ContradictoryPlugin(name.clone()));
        }
        let mut on: BTreeSet<&str> = KNOWN
            .iter()
            .filter(|(_, by_default)| *by_default)
            .map(|(name, _)| *name)
            .collect();
        for name in enable {
            on.insert(find(name)?);
        }
        for name in disable {
            on.remove(find(name)?);
        }
        Ok(Self {
            on,
            policies: BTreeMap::new(),
            bindings: BTreeMap::new(),
            decider: Arc::default(),
        })
    }

    /// Puts a written policy or binding in force, until it is gone. An expression that does not
    /// compile any longer, as in an older release, fails when it is evaluated.
    ///
    /// # Errors
    /// What keeps a policy or binding that another release has stored from being put in force.
    pub(crate) fn policy_changed(
        &mut self,
        change: &Change,
        kube: KubeVersion,
    ) -> Result<(), Vec<FieldError>> {
        let name = change.key.name.clone();
        let after = change.after.as_deref();
        let before = change.before.as_deref();
        if let (Some(before), Some(after)) = (before, after)
            && before["spec"] == after["spec"]
        {
            return Ok(());
        }
        if change.told["kind"] == "ValidatingAdmissionPolicy" {
            let compiled = after.map(|it| Policy::stored(it, kube)).transpose()?;
            replace(&mut self.policies, name, compiled);
        } else {
            let compiled = after.map(Binding::compile).transpose()?;
            replace(&mut self.bindings, name, compiled);
        }
        let (policies, bindings) = (self.policies.values(), self.bindings.values());
        self.decider = Arc::new(Policies::new(policies.cloned(), bindings.cloned()));
        Ok(())
    }

    /// Whether objects of that kind are parameters of a policy.
    pub(crate) fn reads_parameters_of(&self, kind: &Value) -> bool {
        let mut all = self.policies.values();
        all.any(|it| it.param_kind().is_some_and(|it| *kind == it.kind))
    }

    /// Lets the mutating plugins prepare a write; of one that writes an object, the object and
    /// what it was before.
    ///
    /// # Errors
    /// The refusal of the first that refuses.
    pub(crate) fn mutate(
        &self,
        state: &mut State,
        asked: &Asked<'_>,
        write: Option<(&mut Value, Option<&Value>)>,
    ) -> Result<(), Status> {
        let (call, target, operation) = asked;
        if self.on.contains(PROVISION)
            && *operation == Operation::Create
            && !target.namespace.is_empty()
            && !call.query.dry_run
        {
            namespace::ensure(state, &target.namespace);
        }
        if self.on.contains(LIFECYCLE) {
            namespace::admit(state, target, *operation)?;
        }
        let is_pod = target.resource.storage == GroupResource::new("", "pods");
        match write {
            Some((pod, old)) if is_pod && target.subresource.is_empty() => {
                self.prepare_pod(state, target, (pod, old))
            }
            _ => Ok(()),
        }
    }

    fn prepare_pod(
        &self,
        state: &mut State,
        target: &Target,
        (pod, old): (&mut Value, Option<&Value>),
    ) -> Result<(), Status> {
        if self.on.contains(ACCOUNT) && old.is_none() {
            pod::account(state, target, pod)?;
        }
        if self.on.contains(TOLERATIONS) {
            pod::tolerations(pod);
        }
        if self.on.contains(PRIORITY) {
            pod::priority(target, pod, old)?;
        }
        Ok(())
    }

    /// Asks the validating plugins in turn; the first refusal is the answer.
    pub(crate) fn validate(
        &self,
        state: &State,
        asked: &Asked<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Decision, Status> {
        let (_, target, _) = asked;
        if !self.on.contains(POLICY) {
            return Ok(Decision::default());
        }
        let decision = self.decide(state, asked, object, old);
        match decision.denied() {
            None => Ok(decision),
            Some(denial) => {
                let mut refused = refusal(target, denial);
                refused.warnings.clone_from(&decision.warnings);
                Err(refused)
            }
        }
    }

    fn decide(
        &self,
        state: &State,
        asked: &Asked<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Decision {
        let (call, target, operation) = asked;
        let resource = &target.resource;
        let user = User {
            name: call.user.name.clone(),
            uid: call.user.uid.clone(),
            groups: call.user.groups.clone(),
            extra: call.user.extra.clone(),
        };
        let others = equivalents(state, target);
        let equivalents = others.iter().map(|it| names(it, &target.subresource));
        let equivalents: Vec<_> = equivalents.collect();
        let options = options(call, *operation);
        // A namespace is selected by its own labels, as what is in it is.
        let namespace = if resource.plural == "namespaces" && resource.group.is_empty() {
            &target.name
        } else {
            &target.namespace
        };
        let namespace_object =
            state.get(state.shelves.namespaces, &Key::new("", namespace));
        let (resource_names, kind_names) = names(resource, &target.subresource);
        let request = Request {
            operation: *operation,
            kind: kind_names,
            resource: resource_names,
            equivalents: &equivalents,
            subresource: &target.subresource,
            namespace,
            name: &target.name,
            object,
            old_object: old,
            options: Some(&options),
            user: &user,
            dry_run: options.get("dryRun").is_some(),
            namespace_object: namespace_object.map(|it| &**it),
        };
        self.decider.decide(&request, &Surroundings(state))
    }
}

fn replace<T>(all: &mut BTreeMap<Arc<str>, Arc<T>>, name: Arc<str>, now: Option<T>) {
    match now {
        Some(one) => {
            all.insert(name, Arc::new(one));
        }
        None => {
            all.remove(&name);
        }
    }
}

fn refusal(target: &Target, denial: &fivespot_admission::policy::Denial) -> Status {
    let causes = denial.causes.iter().cloned().map(Cause::from);
    Status::new(
        denial.code,
        Reason::parse(&denial.reason),
        denial.message.clone(),
    )
    .with_details(Details {
        name: named(target).to_owned(),
        group: target.resource.group.clone(),
        kind: target.resource.plural.clone(),
        causes: causes.collect(),
        ..Details::default()
    })
}

/// How a refusal names what it is about; a collection that is deleted has no name.
fn named(target: &Target) -> &str {
    if target.name.is_empty() {
        "Unknown"
    } else {
        &target.name
    }
}

/// The resource, and the kind of what is written through it or its subresource.
fn names<'a>(
    resource: &'a Resource,
    subresource: &str,
) -> (GroupVersionResource<'a>, GroupVersionKind<'a>) {
    let (group, version) = (resource.group.as_str(), resource.version.as_str());
    let mut all = resource.subresources.iter();
    let written = all.find(|it| it.name() == subresource);
    let own = (group, version, resource.kind.as_str());
    let kind = written.and_then(Subresource::kind).unwrap_or(own);
    (
        GroupVersionResource {
            group,
            version,
            resource: &resource.plural,
        },
        GroupVersionKind {
            group: kind.0,
            version: kind.1,
            kind: kind.2,
        },
    )
}

/// The other served shapes of what a request is about.
fn equivalents(state: &State, target: &Target) -> Vec<Arc<Resource>> {
    let own = &target.resource;
    let others = state.registry.all().filter(|it| {
        it.storage == own.storage && (it.group != own.group || it.version != own.version)
    });
    others.cloned().collect()
}

fn options(call: &Call, operation: Operation) -> Value {
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete | Operation::Connect => return delete::said_options(call),
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if !call.query.field_manager.is_empty() {
        options["fieldManager"] = call.query.field_manager.as_str().into();
    }
    if call.query.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options
}

/// Where policies take their parameters from, and whom they ask for rights.
struct Surroundings<'a>(&'a State);

impl Surroundings<'_> {
    fn resource(&self, kind: &ParamKind) -> Option<&Arc<Resource>> {
        let (group, version) = kind
            .api_version
            .rsplit_once('/')
            .unwrap_or(("", &kind.api_version));
        self.0.registry.of_kind(group, version, &kind.kind)
    }

    fn shelf(&self, kind: &ParamKind) -> Option<crate::store::Shelf> {
        let storage: &GroupResource = &self.resource(kind)?.storage;
        self.0.store.known_shelf(storage)
    }
}

impl World for Surroundings<'_> {
    fn param_is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        self.resource(kind).map(|it| it.namespaced)
    }

    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let found = self.0.get(self.shelf(kind)?, &Key::new(namespace, name));
        found.map(|it| Value::clone(it))
    }

    fn params(&self, kind: &ParamKind, namespace: &str) -> Vec<Value> {
        let Some(shelf) = self.shelf(kind) else {
            return Vec::new();
        };
        let namespace = Some(namespace).filter(|it| !it.is_empty());
        let range = Range {
            namespace,
            after: None,
        };
        let found = self.0.store.list(shelf, &range, None);
        found
            .into_iter()
            .flatten()
            .map(|(_, it)| Value::clone(it))
            .collect()
    }

    fn converted(
        &self,
        object: &Value,
        kind: GroupVersionKind<'_>,
    ) -> Result<Value, String> {
        let found = self.0.registry.of_kind(kind.group, kind.version, kind.kind);
        let resource = found.ok_or_else(|| "the kind is not served".to_owned())?;
        let conversion = Conversion::of(self.0, resource);
        let converted =
            conversion.converted(resource, object.clone(), &kind.api_version());
        converted.map_err(|refused| refused.message)
    }

    fn authorizer(&self) -> Option<Arc<dyn policy::Authorizer>> {
        Some(Arc::new(Authorizer(self.0.book.clone())))
    }
}
