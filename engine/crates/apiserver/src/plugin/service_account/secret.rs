//! The secrets that a service account allows its pods to reference.

use serde_json::Value;

use crate::meta;
use crate::plugin::pod::{list, text};

/// Limits the pods of a service account to the secrets that it lists.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Checks the references of a pod if its service account enforces its list of secrets
/// (`limitSecretReferences`).
///
/// # Errors
/// The first reference to a secret that the service account does not list.
pub(super) fn check(account: &Value, spec: &Value) -> Result<(), String> {
    let enforces = account["metadata"]["annotations"][ENFORCE].as_str();
    if !enforces.is_some_and(is_true) {
        return Ok(());
    }
    let account_name = meta::name(account);
    let end = format!(
        "is not allowed because service account {account_name} does not reference that"
    );
    let lists = |field: &str, name: &str| {
        list(account, field)
            .iter()
            .any(|it| text(it, "name") == name)
    };
    let of_volumes = list(spec, "volumes").iter();
    let of_volumes = of_volumes
        .filter(|it| it["secret"].is_object())
        .map(|it| Reference::new("volume with ", text(&it["secret"], "secretName")));
    let of_containers = [
        ("initContainers", "init container"),
        ("containers", "container"),
    ]
    .into_iter()
    .flat_map(|(field, what)| {
        let all = list(spec, field).iter();
        all.flat_map(move |it| of_container(it, what))
    });
    for Reference { holder, name } in of_volumes.chain(of_containers) {
        if !lists("secrets", name) {
            return Err(format!("{holder}secret.secretName=\"{name}\" {end} secret"));
        }
    }
    for (index, pull) in list(spec, "imagePullSecrets").iter().enumerate() {
        let name = text(pull, "name");
        if !lists("imagePullSecrets", name) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{name}\" {end} imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// Whether Go reads a text as `true` (`strconv.ParseBool`).
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
}

/// A reference to a secret.
struct Reference<'a> {
    /// What refers to it: the start of the error.
    holder: String,
    name: &'a str,
}

impl<'a> Reference<'a> {
    fn new(holder: impl Into<String>, name: &'a str) -> Self {
        Self {
            holder: holder.into(),
            name,
        }
    }
}

/// The references in the environment of a container.
fn of_container<'a>(
    container: &'a Value,
    what: &str,
) -> impl Iterator<Item = Reference<'a>> {
    let start = format!("{what} {} with", text(container, "name"));
    let variables = list(container, "env").iter().filter_map({
        let start = start.clone();
        move |it| {
            let reference = &it["valueFrom"]["secretKeyRef"];
            let variable = text(it, "name");
            let holder = format!("{start} envVar {variable} referencing ");
            let found = Reference::new(holder, text(reference, "name"));
            reference.is_object().then_some(found)
        }
    });
    let from = list(container, "envFrom").iter().filter_map(move |it| {
        let reference = &it["secretRef"];
        let holder = format!("{start} envFrom referencing ");
        let found = Reference::new(holder, text(reference, "name"));
        reference.is_object().then_some(found)
    });
    variables.chain(from)
}
