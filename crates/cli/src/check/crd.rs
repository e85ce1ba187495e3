//! Checks whether the CRDs exist and have this version.

use std::collections::BTreeSet;

use fivespot_api::condition::Reason;
use fivespot_api::{crd, manifest};
use serde_json::Value;

use super::finding::Finding;
use crate::reader::Reader;
use crate::requests::Response;

const CHECK: &str = "crd";
const REMEDY: &str = "apply deploy/install.yaml or install the chart";

/// One finding for each CRD, and one for those that could not be read.
pub(super) async fn check(reader: &Reader) -> Vec<Finding> {
    let mut all = Vec::new();
    for document in manifest::installed(reader.minor) {
        if document["kind"] == "CustomResourceDefinition" {
            all.push(check_crd(reader, &document).await);
        }
    }
    Finding::together(all)
}

async fn check_crd(reader: &Reader, ours: &Value) -> Finding {
    let name = ours["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    match reader.requests.get(&path).await {
        Response::NotFound => Finding::error(
            CHECK,
            format!("5-Spot is not installed in this cluster: there is no CRD {name}"),
        )
        .remedy(REMEDY)
        .missing(),
        Response::Failed(why) => Finding::unknown(CHECK, format!("{name}: {why}")),
        Response::Found(stored) => compare(name, ours, &stored),
    }
}

fn compare(name: &str, ours: &Value, stored: &Value) -> Finding {
    let is_true = |kind: &str| {
        let conditions = stored["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == kind && it["status"] == "True")
    };
    if !stored["metadata"]["deletionTimestamp"].is_null() {
        let message = format!("{name} is being deleted, with all objects of its kind");
        return Finding::error(CHECK, message).remedy(
            "apply it again when the deletion has ended; finalizers of the objects delay it",
        );
    }
    if !is_true("Established") {
        return Finding::error(CHECK, format!("{name} is not served yet")).remedy(
            format!("see the conditions in `kubectl get crd {name} -o yaml`"),
        );
    }
    let lacking = if name == fivespot_api::name::crd() {
        crd::missing_fields(stored)
    } else {
        Vec::new()
    };
    let (ours, stored) = (fields(ours), fields(stored));
    let named = |these: &BTreeSet<String>, those: &BTreeSet<String>| {
        let missing: Vec<&String> = these.difference(those).collect();
        match missing.as_slice() {
            [] => None,
            [one] => Some((*one).clone()),
            [one, rest @ ..] => Some(format!("{one} and {} more", rest.len())),
        }
    };
    match (named(&ours, &stored), named(&stored, &ours)) {
        (None, None) => Finding::ok(CHECK, format!("{name} matches this version")),
        (Some(_), _) if !lacking.is_empty() => Finding::error(
            CHECK,
            format!(
                "{}: {name} is older than this 5spot and lacks {}: an operator of this version \
                 creates no machine",
                Reason::CustomResourceDefinitionOutdated,
                lacking.join(", "),
            ),
        )
        .remedy(REMEDY),
        (Some(missing), _) => Finding::error(
            CHECK,
            format!("{name} is older than this 5spot: it lacks {missing}"),
        )
        .remedy(REMEDY),
        (None, Some(more)) => Finding::warning(
            CHECK,
            format!("{name} is newer than this 5spot: it has {more}"),
        )
        .remedy("use the 5spot of the version that is installed"),
    }
}

/// The contents of a CRD: its versions, and of the stored one the fields by path and the rules by
/// message.
fn fields(crd: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let versions = crd["spec"]["versions"].as_array();
    for version in versions.into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        all.insert(format!("version {name}"));
        if version["storage"] == true {
            collect(&version["schema"]["openAPIV3Schema"], "", &mut all);
        }
    }
    all
}

fn collect(schema: &Value, path: &str, all: &mut BTreeSet<String>) {
    let rules = schema["x-kubernetes-validations"].as_array();
    for rule in rules.into_iter().flatten() {
        let message = rule["message"].as_str().unwrap_or_default();
        all.insert(format!("the rule of {path} \"{message}\""));
    }
    let properties = schema["properties"].as_object();
    for (name, inner) in properties.into_iter().flatten() {
        let path = format!("{path}.{name}");
        all.insert(path.clone());
        collect(inner, &path, all);
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            collect(&schema[key], &format!("{path}[]"), all);
        }
    }
}
