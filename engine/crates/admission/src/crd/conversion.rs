//! `conversion`: how objects are converted between versions.

use serde_json::Value;

use super::definition::{SPEC, text};
use crate::field::Path;
use crate::{FieldError, name};

/// `-----BEGIN ` in base64, the start of every certificate in PEM.
const CERTIFICATE: &str = "LS0tLS1CRUdJTi";
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// The validation errors of a conversion. `preserves` is whether the definition preserves
/// unknown fields, which a webhook cannot convert. `trusts` is whether a CA bundle must be
/// valid.
pub(super) fn errors(
    conversion: &Value,
    (preserves, trusts): (bool, bool),
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if conversion.is_null() {
        return errors;
    }
    let path = SPEC.field("conversion");
    let at = path.field("strategy");
    let strategy = text(conversion, "strategy");
    if preserves && strategy != "None" {
        let detail = "must be None if spec.preserveUnknownFields is true";
        let error = FieldError::invalid(at, strategy.into(), detail);
        errors.push(error.of_named_type());
    }
    match strategy {
        "None" | "Webhook" => {}
        "" => errors.push(FieldError::required(at, "")),
        other => errors.push(FieldError::not_supported(
            at,
            other.into(),
            ["None", "Webhook"],
        )),
    }
    let null = Value::Null;
    let webhook = conversion.get("webhook").unwrap_or(&null);
    let client = webhook.get("clientConfig").filter(|it| !it.is_null());
    let reviews = webhook.get("conversionReviewVersions");
    let at = path.field("webhookClientConfig");
    let at_reviews = path.field("conversionReviewVersions");
    if strategy == "Webhook" {
        if let Some(client) = client {
            client_errors(client, &at, &mut errors);
            if trusts {
                errors.extend(bundle_error(client, &at));
            }
        } else {
            let detail = "required when strategy is set to Webhook";
            errors.push(FieldError::required(at, detail));
        }
        review_errors(reviews.unwrap_or(&null), at_reviews, &mut errors);
        return errors;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(at, detail));
    }
    if reviews
        .and_then(Value::as_array)
        .is_some_and(|it| !it.is_empty())
    {
        errors.push(FieldError::forbidden(at_reviews, detail));
    }
    errors
}

fn review_errors(reviews: &Value, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let given: Vec<&str> = reviews
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| it.as_str().unwrap_or_default())
        .collect();
    if given.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for (at, version) in given.iter().enumerate() {
        let path = path.index(at);
        let mut refuse = |detail: String| {
            errors.push(FieldError::invalid(path, (*version).into(), detail));
        };
        if given.iter().take(at).any(|earlier| earlier == version) {
            refuse("duplicate version".to_owned());
            continue;
        }
        name::dns_1035_label(version)
            .into_iter()
            .for_each(&mut refuse);
    }
    if !given.iter().any(|version| REVIEWS.contains(version)) {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(FieldError::invalid(path, reviews.clone(), detail));
    }
}

/// The error of a CA bundle without certificates; an empty bundle is valid.
fn bundle_error(client: &Value, path: &Path<'_>) -> Option<FieldError> {
    let bundle = text(client, "caBundle");
    let is_one = bundle.is_empty() || bundle.starts_with(CERTIFICATE);
    (!is_one).then(|| {
        let detail =
            "unable to load root certificates: unable to parse bytes as PEM block";
        FieldError::invalid(path.field("caBundle"), bundle.into(), detail)
    })
}

/// Whether a definition's CA bundle is invalid, so that an update need not make it valid.
pub(super) fn has_bad_bundle(crd: &Value) -> bool {
    let client = crd.pointer("/spec/conversion/webhook/clientConfig");
    client.is_some_and(|client| bundle_error(client, &SPEC).is_some())
}

fn client_errors(client: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let present = |name: &str| client.get(name).filter(|it| !it.is_null());
    match (present("url"), present("service")) {
        (Some(url), None) => {
            let url = url.as_str().unwrap_or_default();
            url_errors(url, path.field("url"), errors);
        }
        (None, Some(service)) => service_errors(service, &path.field("service"), errors),
        _ => {
            let detail = "exactly one of url or service is required";
            errors.push(FieldError::required(*path, detail));
        }
    }
}

fn url_errors(url: &str, path: Path<'_>, errors: &mut Vec<FieldError>) {
    let form = "; desired format: https://host[/path]";
    let mut refuse = |value: &str, detail: String| {
        errors.push(FieldError::invalid(path, value.into(), detail));
    };
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let authority = rest
        .strip_prefix("//")
        .map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if !scheme.eq_ignore_ascii_case("https") {
        let detail = format!("'https' is the only allowed URL scheme{form}");
        refuse(&scheme.to_lowercase(), detail);
    }
    if host.is_empty() {
        refuse("", format!("host must be specified{form}"));
    }
    if let Some(user) = user {
        let detail = "user information is not permitted in the URL";
        refuse(user, detail.to_owned());
    }
    if !fragment.is_empty() {
        let detail = "fragments are not permitted in the URL";
        refuse(fragment, detail.to_owned());
    }
    if !query.is_empty() {
        let detail = "query parameters are not permitted in the URL";
        refuse(query, detail.to_owned());
    }
}

fn service_errors(service: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    // The API server checks the other field of the two.
    for (required_field, looked_at) in [("name", "namespace"), ("namespace", "name")] {
        if text(service, looked_at).is_empty() {
            errors.push(FieldError::required(path.field(required_field), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path.field("port"), port.into(), detail));
    }
    let given = text(service, "path");
    if matches!(given, "" | "/") {
        return;
    }
    let mut refuse = |detail: String| {
        let path = path.field("path");
        errors.push(FieldError::invalid(path, given.into(), detail));
    };
    if given == "//" {
        refuse("segment[0] may not be empty".to_owned());
        return;
    }
    if !given.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    // The first character is treated as the slash.
    let mut letters = given.chars();
    letters.next();
    let inner = letters.as_str();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (at, step) in inner.split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{at}] may not be empty"));
        } else {
            for failure in name::dns_subdomain(step) {
                refuse(format!("segment[{at}]: {failure}"));
            }
        }
    }
}
