//! A case: a sequence of requests about one object.

use serde_json::{Map, Value, json};

use super::mutation::Mutation;
use super::seed::Seed;
use crate::random::Random;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Create,
    Update,
    Merge,
    Strategic,
    Json,
    Apply,
    Read,
    List,
    Delete,
}

impl Form {
    /// Its name in the output.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Merge => "merge patch",
            Self::Strategic => "strategic patch",
            Self::Json => "json patch",
            Self::Apply => "apply",
            Self::Read => "get",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }

    fn media(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Apply => "application/apply-patch+yaml",
            _ => "application/json",
        }
    }
}

/// One request, as it is derived from the seed.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) form: Form,
    /// Empty, `status` or `scale`.
    pub(super) subresource: String,
    /// The changes of the object that is sent.
    pub(super) mutations: Vec<Mutation>,
    /// Operations of a JSON patch in addition to those for the changes.
    pub(super) operations: Vec<Value>,
    /// Whether it is about an object that does not exist.
    pub(super) of_missing: bool,
    /// The query of the request.
    pub(super) query: Vec<String>,
    /// The user of the request. Empty for the administrator.
    pub(super) user: String,
    /// The options in the body of a deletion.
    pub(super) options: Option<Value>,
}

/// A request as it is sent to a server.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) media: &'static str,
    pub(super) body: Option<Value>,
    /// The user of the request. Empty for the administrator.
    pub(super) user: String,
}

/// Namespaces with restrictions. `engine/judge/server/setup.yaml` creates them, except the one that is
/// missing.
const PLACES: [&str; 8] = [
    "differential-limited",
    "differential-quota",
    "differential-scoped",
    "differential-baseline",
    "differential-restricted",
    "differential-policy",
    "differential-missing",
    "differential-ending",
];

/// Users with limited permissions. `$name` is the name of the object.
const USERS: [&str; 6] = [
    "nobody",
    "reader",
    "editor",
    "owner",
    "system:node:$name",
    "system:node:other",
];

/// Requests about one object.
#[derive(Clone, Debug)]
pub(super) struct Case<'a> {
    pub(super) number: u64,
    pub(super) seed: &'a Seed,
    /// The namespace of the object. Empty for cluster-scoped kinds.
    pub(super) namespace: String,
    pub(super) steps: Vec<Step>,
}

impl<'a> Case<'a> {
    /// The case with this number.
    pub(super) fn of(seeds: &'a [Seed], run: u64, number: u64) -> Option<Self> {
        let mut random = Random::of(run, number);
        let seed = random.any_of(seeds)?;
        let own = seed.namespace().unwrap_or_default();
        let elsewhere = !own.is_empty() && random.chance(20);
        let place = random.any_of(&PLACES).filter(|_| elsewhere);
        let mut case = Self {
            number,
            seed,
            namespace: place.map_or(own, |it| (*it).to_owned()),
            steps: Vec::new(),
        };
        let first = if random.chance(15) {
            Form::Apply
        } else {
            Form::Create
        };
        let is_wrong = random.chance(60);
        case.steps
            .push(case.step(first, "", usize::from(is_wrong), &mut random));
        if !is_wrong {
            for _ in 0..=random.below(3) {
                let step = case.later(&mut random);
                // Controllers act on a deletion at an unpredictable time.
                let is_last = step.leaves_work();
                case.steps.push(step);
                if is_last {
                    break;
                }
            }
        }
        Some(case)
    }

    fn later(&self, random: &mut Random) -> Step {
        const FORMS: [Form; 16] = [
            Form::Update,
            Form::Update,
            Form::Update,
            Form::Merge,
            Form::Merge,
            Form::Strategic,
            Form::Strategic,
            Form::Json,
            Form::Json,
            Form::Json,
            Form::Apply,
            Form::Apply,
            Form::Read,
            Form::List,
            Form::Delete,
            Form::Delete,
        ];
        let form = random.any_of(&FORMS).copied().unwrap_or(Form::Update);
        let is_whole = matches!(form, Form::Delete | Form::List);
        let subresource = if is_whole || random.chance(60) {
            String::new()
        } else {
            let of_seed = random.any_of(&self.seed.subresources);
            of_seed.cloned().unwrap_or_default()
        };
        let count = 1 + random.below(2);
        self.step(form, &subresource, count, random)
    }

    fn step(
        &self,
        form: Form,
        subresource: &str,
        mutations: usize,
        random: &mut Random,
    ) -> Step {
        let mut object = self.whole(subresource, &self.name());
        let mut all = Vec::new();
        for _ in 0..mutations {
            let Some(mutation) = Mutation::of(&object, random) else {
                break;
            };
            mutation.apply(&mut object);
            all.push(mutation);
        }
        let operations = if form == Form::Json && random.chance(40) {
            vec![operation(&object, random)]
        } else {
            Vec::new()
        };
        let user = random.any_of(&USERS).filter(|_| random.clone().chance(8));
        let user = user.map_or(String::new(), |it| it.replace("$name", &self.name()));
        let of_missing = !matches!(form, Form::Create | Form::List) && random.chance(6);
        let has_options = form == Form::Delete && random.chance(60);
        Step {
            form,
            subresource: subresource.to_owned(),
            mutations: all,
            operations,
            of_missing,
            query: query(form, &self.name(), random),
            user,
            options: has_options.then(|| options(random)),
        }
    }

    /// The name of the object.
    pub(super) fn name(&self) -> String {
        let named = self.seed.object["metadata"]["name"].as_str();
        let own = format!("c{}", self.number);
        named.map_or(own.clone(), |it| it.replace("$name", &own))
    }

    /// The body for an object without changes.
    fn whole(&self, subresource: &str, name: &str) -> Value {
        let mut object = self.seed.object.clone();
        fill(&mut object, &format!("c{}", self.number));
        let metadata = &mut object["metadata"];
        if !metadata.is_object() {
            *metadata = json!({});
        }
        if !self.seed.nameless {
            metadata["name"] = name.into();
        }
        if !self.namespace.is_empty() {
            metadata["namespace"] = self.namespace.as_str().into();
        }
        match subresource {
            "scale" => json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": object["metadata"], "spec": {"replicas": 2}}),
            "status" => {
                object["status"] = self.seed.status.clone();
                object
            }
            _ => object,
        }
    }

    /// The request of a step. `version` is the resourceVersion that the server returned last.
    pub(super) fn request(&self, step: &Step, version: &str) -> Request {
        let name = if step.of_missing {
            "missing".to_owned()
        } else {
            self.name()
        };
        let mut object = self.whole(&step.subresource, &name);
        for mutation in &step.mutations {
            mutation.apply(&mut object);
        }
        let mut path = self.collection();
        if !matches!(step.form, Form::Create | Form::List) {
            path = format!("{path}/{name}");
        }
        if !step.subresource.is_empty() {
            path = format!("{path}/{}", step.subresource);
        }
        if !step.query.is_empty() {
            path = format!("{path}?{}", step.query.join("&"));
        }
        let (method, body) = match step.form {
            Form::Create => ("POST", Some(object)),
            Form::Update => {
                if self.seed.versioned
                    && let Some(fields) = object["metadata"].as_object_mut()
                {
                    fields
                        .entry("resourceVersion")
                        .or_insert_with(|| version.into());
                }
                ("PUT", Some(object))
            }
            Form::Merge | Form::Strategic => ("PATCH", Some(part(step, &object))),
            Form::Json => ("PATCH", Some(operations(step))),
            Form::Apply => ("PATCH", Some(object)),
            Form::Read | Form::List => ("GET", None),
            Form::Delete => ("DELETE", step.options.clone()),
        };
        Request {
            method,
            path,
            media: step.form.media(),
            body,
            user: step.user.clone(),
        }
    }

    /// The path of the collection in the case's namespace.
    pub(super) fn collection(&self) -> String {
        self.seed.path.replace("$ns", &self.namespace)
    }
}

impl Step {
    /// Whether it changes the stored object.
    pub(super) fn writes(&self) -> bool {
        let is_read = matches!(self.form, Form::Read | Form::List | Form::Delete);
        !is_read && !self.query.iter().any(|it| it.starts_with("dryRun"))
    }

    /// Whether controllers continue the work after the response.
    fn leaves_work(&self) -> bool {
        self.form == Form::Delete
    }
}

/// The query of a request.
fn query(form: Form, name: &str, random: &mut Random) -> Vec<String> {
    let mut query = Vec::new();
    let several: &[&str] = match form {
        Form::List => &LISTS,
        Form::Read => &["", "", "", "resourceVersion=0", "resourceVersion=x"],
        Form::Delete => &["", "", "", "", "dryRun=All", "gracePeriodSeconds=0"],
        _ => &["", "", "", "fieldValidation=Strict", "dryRun=All"],
    };
    let picked = random.any_of(several).copied().unwrap_or_default();
    if !picked.is_empty() {
        query.push(picked.replace("$name", name));
    }
    if form == Form::Apply {
        let manager = if random.chance(70) {
            "differential"
        } else {
            "other"
        };
        query.push(format!("fieldManager={manager}"));
        if random.chance(25) {
            query.push("force=true".to_owned());
        }
    }
    query
}

/// Queries of lists. They select the object or nothing, because the servers have different other
/// objects.
const LISTS: [&str; 18] = [
    "fieldSelector=metadata.name%3D$name",
    "fieldSelector=metadata.name%3D$name&limit=1",
    "fieldSelector=metadata.name%3D%3D$name,metadata.namespace!%3Dother",
    "fieldSelector=metadata.name%3D$name&labelSelector=app%3Da",
    "fieldSelector=metadata.name%3D$name&labelSelector=app%20in%20(a,b),!c",
    "fieldSelector=metadata.name%3D$name&labelSelector=app%20notin%20(a)",
    "fieldSelector=metadata.name%3D$name&labelSelector=a%3Eb",
    "fieldSelector=metadata.name%3D$name&labelSelector=-a",
    "fieldSelector=metadata.name%3D$name&labelSelector=a%20in%20()",
    "fieldSelector=metadata.name%3D$name,status.phase%3DPending",
    "fieldSelector=metadata.name%3D$name,spec.nodeName%3D",
    "fieldSelector=metadata.name%3D$name,type!%3DOpaque",
    "fieldSelector=spec.nothing%3D1",
    "fieldSelector=metadata.name",
    "fieldSelector=metadata.name%3D$name&resourceVersion=x",
    "fieldSelector=metadata.name%3D$name&resourceVersionMatch=Exact",
    "fieldSelector=metadata.name%3D$name&limit=1&continue=x",
    "fieldSelector=metadata.name%3D$name&limit=x",
];

/// The options of a deletion.
fn options(random: &mut Random) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    let several = [
        ("propagationPolicy", json!("Foreground")),
        ("propagationPolicy", json!("Orphan")),
        ("propagationPolicy", json!("Background")),
        ("propagationPolicy", json!("Odd")),
        ("orphanDependents", json!(true)),
        ("gracePeriodSeconds", json!(0)),
        ("gracePeriodSeconds", json!(5)),
        ("gracePeriodSeconds", json!(-1)),
        ("preconditions", json!({"uid": "other"})),
        ("preconditions", json!({"resourceVersion": "1"})),
        ("preconditions", json!({})),
        ("dryRun", json!(["All"])),
        ("dryRun", json!(["Some"])),
        ("unknownField", json!("x")),
        ("kind", json!("Pod")),
    ];
    for _ in 0..=random.below(2) {
        if let Some((name, value)) = random.any_of(&several) {
            options[*name] = value.clone();
        }
    }
    options
}

/// Replaces `$name` in all texts by the name of the object.
fn fill(value: &mut Value, name: &str) {
    match value {
        Value::String(text) if text.contains("$name") => {
            *text = text.replace("$name", name);
        }
        Value::Array(items) => items.iter_mut().for_each(|it| fill(it, name)),
        Value::Object(fields) => fields.values_mut().for_each(|it| fill(it, name)),
        _ => {}
    }
}

/// A merge patch with the changes of the step. Lists are sent whole.
fn part(step: &Step, object: &Value) -> Value {
    let mut patch = Value::Object(Map::new());
    for mutation in &step.mutations {
        let mut at = String::new();
        let mut here = &mut patch;
        for key in mutation.pointer.split('/').skip(1) {
            at = format!("{at}/{key}");
            let name = key.replace("~1", "/").replace("~0", "~");
            let Value::Object(fields) = here else {
                break;
            };
            let below = object.pointer(&at);
            let goes_on = at != mutation.pointer && below.is_some_and(Value::is_object);
            if goes_on {
                here = fields.entry(name).or_insert_with(|| json!({}));
            } else {
                fields.insert(name, below.cloned().unwrap_or_default());
                break;
            }
        }
    }
    patch
}

/// The operations of a JSON patch.
fn operations(step: &Step) -> Value {
    let changes = step.mutations.iter().map(|it| match &it.value {
        Some(value) => json!({"op": "add", "path": it.pointer, "value": value}),
        None => json!({"op": "remove", "path": it.pointer}),
    });
    changes.chain(step.operations.iter().cloned()).collect()
}

/// An unusual operation of a JSON patch.
fn operation(object: &Value, random: &mut Random) -> Value {
    const OPERATIONS: [&str; 7] =
        ["test", "copy", "move", "replace", "add", "remove", "odd"];
    const PATHS: [&str; 12] = [
        "",
        "/",
        "/metadata/labels",
        "/metadata/annotations",
        "/metadata/annotations/a",
        "/metadata/finalizers/-",
        "/metadata/finalizers/0",
        "/spec",
        "/spec/missing/deeper",
        "/kind",
        "metadata",
        "/metadata/name",
    ];
    let path = |random: &mut Random| random.any_of(&PATHS).copied().unwrap_or_default();
    let mut made = json!({
        "op": random.any_of(&OPERATIONS).copied().unwrap_or_default(),
        "path": path(random),
    });
    // Kubernetes' library panics if the whole object is compared with a missing value.
    if made["path"] == "" || random.chance(70) {
        let value = object.pointer(path(random));
        made["value"] = value.cloned().unwrap_or(Value::Null);
    }
    if random.chance(70) {
        made["from"] = path(random).into();
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed() -> Seed {
        serde_json::from_value(json!({
            "path": "/api/v1/namespaces/$ns/configmaps",
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"of": "$name"}},
        }))
        .expect("a seed")
    }

    fn step(form: Form, mutations: Vec<Mutation>) -> Step {
        Step {
            form,
            subresource: String::new(),
            mutations,
            operations: Vec::new(),
            of_missing: false,
            query: Vec::new(),
            user: String::new(),
            options: None,
        }
    }

    #[test]
    fn a_merge_patch_contains_only_the_changes() {
        let (seed, removed) = (seed(), "/data/of".to_owned());
        let case = Case {
            number: 7,
            seed: &seed,
            namespace: "differential-configmaps".to_owned(),
            steps: Vec::new(),
        };
        let mutation = Mutation {
            pointer: removed,
            value: None,
        };
        let request = case.request(&step(Form::Merge, vec![mutation]), "");
        assert_eq!(request.body, Some(json!({"data": {"of": null}})));
        let path = "/api/v1/namespaces/differential-configmaps/configmaps/c7";
        assert_eq!((request.method, request.path.as_str()), ("PATCH", path));
        let whole = case.request(&step(Form::Create, Vec::new()), "").body;
        assert_eq!(
            whole.map(|it| it["data"].clone()),
            Some(json!({"of": "c7"}))
        );
    }

    #[test]
    fn equal_numbers_give_equal_cases() {
        let seeds = [seed()];
        let made = |number| format!("{:?}", Case::of(&seeds, 1, number));
        assert_eq!(made(5), made(5));
        assert_ne!(made(5), made(6));
    }
}
