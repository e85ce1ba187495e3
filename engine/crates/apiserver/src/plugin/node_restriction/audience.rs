//! The audiences for which a kubelet may request tokens: those of the volumes of the pod
//! (`validateNodeServiceAccountAudience`).

use serde_json::Value;

use super::Check;
use crate::authorization::{self, Action};
use crate::meta;
use crate::plugin::pod::{aggregate, list, text};
use crate::resource::GroupResource;

/// Checks that a volume of the pod, or RBAC, allows the only requested audience. Without one, the
/// audience is empty.
///
/// # Errors
/// Why the kubelet may not request the token.
pub(super) fn check(
    request: &Check<'_>,
    pod: &Value,
    audiences: &[Value],
) -> Result<(), String> {
    let audience = match audiences {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return Err("node may only request 0 or 1 audiences".to_owned()),
    };
    let volumes = list(&pod["spec"], "volumes").iter();
    let mut sources = volumes.flat_map(|it| list(&it["projected"], "sources"));
    let is_mounted = sources.any(|it| {
        let token = &it["serviceAccountToken"];
        token.is_object() && text(token, "audience") == audience
    });
    if is_mounted {
        return Ok(());
    }
    let missing = missing_drivers(request, pod);
    if !missing.is_empty() {
        let why = aggregate(&missing);
        return Err(format!("error validating audience {audience:?}: {why}"));
    }
    let attributes = request.attributes;
    let action = Action {
        verb: "request-serviceaccounts-token-audience".to_owned(),
        namespace: attributes.namespace().to_owned(),
        resource: audience.to_owned(),
        name: attributes.name().to_owned(),
        ..Action::default()
    };
    let rules = &request.cluster.rules;
    if authorization::decide(rules, attributes.user(), &action).allowed {
        return Ok(());
    }
    Err(format!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request \
         tokens for this audience",
        attributes.user().name
    ))
}

/// The errors of the CSI volumes of a pod: CSIDrivers, which may list audiences, are not served
/// here, so that none is found.
fn missing_drivers(request: &Check<'_>, pod: &Value) -> Vec<String> {
    let volumes = list(&pod["spec"], "volumes").iter();
    let drivers = volumes.map(|volume| {
        if volume["ephemeral"]["volumeClaimTemplate"].is_object() {
            let claim = format!("{}-{}", meta::name(pod), text(volume, "name"));
            driver_of_claim(request, &claim)
        } else if volume["persistentVolumeClaim"].is_object() {
            let claim = text(&volume["persistentVolumeClaim"], "claimName");
            driver_of_claim(request, claim)
        } else {
            Ok(text(&volume["csi"], "driver").to_owned())
        }
    });
    let errors = drivers.filter_map(|driver| match driver {
        Ok(driver) if driver.is_empty() => None,
        Ok(driver) => Some(format!("csidriver.storage.k8s.io {driver:?} not found")),
        Err(why) => Some(why),
    });
    errors.collect()
}

/// The CSI driver of the volume that a claim is bound to; empty for another volume.
fn driver_of_claim(request: &Check<'_>, name: &str) -> Result<String, String> {
    let claims = GroupResource::new("", "persistentvolumeclaims");
    let namespace = request.attributes.namespace();
    let claim = request.cluster.object(&claims, namespace, name);
    let claim =
        claim.ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
    let volumes = GroupResource::new("", "persistentvolumes");
    let name = text(&claim["spec"], "volumeName");
    let volume = request.cluster.object(&volumes, "", name);
    let volume = volume.ok_or_else(|| format!("persistentvolume {name:?} not found"))?;
    Ok(text(&volume["spec"]["csi"], "driver").to_owned())
}
