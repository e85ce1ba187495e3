//! Kustomizations of the files below `deploy/`.
//!
//! The folders of the parts contain a file `Kustomization`. kustomize reads it; `kubectl apply
//! -f FOLDER`, which reads every `.yaml`, does not.

use std::collections::BTreeMap;
use std::path::Path;

use fivespot_api::manifest::{Error, GeneratedFile};
use serde_json::{Value, json};

/// The parts that every management cluster needs, by their folders.
const BASE: [&str; 4] = ["crds", "admission", "rbac", "controller"];

/// The optional parts: a name, and the folder of the part.
const OVERLAYS: [(&str, &str); 3] = [
    ("cluster-wide-kubeconfigs", "rbac/cluster-wide-kubeconfigs"),
    ("monitoring", "monitoring"),
    ("webhook", "webhook"),
];

/// The kustomizations of `files`, whose paths are relative to `deploy/`: one in the folder of
/// each part, `kustomize/base` with the required parts, and `kustomize/overlays` with the
/// optional ones.
///
/// # Errors
/// No case is known; the YAML emitter could fail.
pub(crate) fn files(files: &[GeneratedFile]) -> Result<Vec<GeneratedFile>, Error> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        if let Some((folder, name)) = file.path.rsplit_once('/')
            && Path::new(name).extension().is_some_and(|it| it == "yaml")
        {
            folders.entry(folder).or_default().push(name);
        }
    }
    let mut all = Vec::new();
    let chosen: Vec<_> = OVERLAYS
        .into_iter()
        .filter(|(_, folder)| folders.contains_key(folder))
        .collect();
    let parts = BASE
        .into_iter()
        .chain(chosen.iter().map(|(_, folder)| *folder));
    for folder in parts {
        if let Some(names) = folders.get(folder) {
            all.push(file(&format!("{folder}/Kustomization"), &json!(names))?);
        }
    }
    let base = BASE.iter().filter(|it| folders.contains_key(*it));
    let base: Vec<String> = base.map(|it| format!("../../{it}")).collect();
    all.push(file("kustomize/base/kustomization.yaml", &json!(base))?);
    for (name, folder) in chosen {
        let resources = json!(["../../base", format!("../../../{folder}")]);
        let path = format!("kustomize/overlays/{name}/kustomization.yaml");
        all.push(file(&path, &resources)?);
    }
    if folders.contains_key("admission") {
        all.push(audit()?);
    }
    Ok(all)
}

/// The base, with policies that admit and record violations. Only those for users: the policies
/// that limit the operator still deny.
fn audit() -> Result<GeneratedFile, Error> {
    let mut kustomization = kustomization(&json!(["../../base"]));
    kustomization["patches"] = json!([{
        "target": {
            "kind": "ValidatingAdmissionPolicyBinding",
            "name": "[a-z]*schedule[a-z]*-validation-binding",
        },
        "patch": "[{\"op\": \"replace\", \"path\": \"/spec/validationActions\", \"value\": [\"Audit\"]}]",
    }]);
    let path = "kustomize/overlays/audit/kustomization.yaml";
    GeneratedFile::manifest(path, "manifests", &[kustomization])
}

fn file(path: &str, resources: &Value) -> Result<GeneratedFile, Error> {
    GeneratedFile::manifest(path, "manifests", &[kustomization(resources)])
}

fn kustomization(resources: &Value) -> Value {
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    })
}

#[cfg(test)]
mod tests {
    use fivespot_api::RESOURCES;
    use regex::Regex;

    use super::*;
    use crate::role::Rights;

    #[test]
    fn an_audit_of_what_users_write_lifts_no_limit_of_the_operator() {
        let text = audit().unwrap().text;
        let kustomization: Value = serde_saphyr::from_str(&text).unwrap();
        let target = kustomization["patches"][0]["target"]["name"]
            .as_str()
            .unwrap();
        let target = Regex::new(&format!("^({target})$")).unwrap();
        for resource in &RESOURCES {
            assert!(target.is_match(resource.policy_binding), "{resource:?}");
        }
        for limit in Rights::default().limits() {
            let name = limit["metadata"]["name"].as_str().unwrap();
            assert!(!target.is_match(name), "{name}");
        }
    }
}
