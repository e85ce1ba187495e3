//! Rules about devices that claims, classes and slices share (pkg/apis/resource/validation).

use std::collections::BTreeSet;

use kubemu_admission::{FieldError, KubeVersion, device_selector, name};

use super::csi_node::{driver_name, named_driver};
use super::field::{Errors, Field};
use super::pod_spec::default::{Fields, each, fill, fill_number, part};
use super::rule;

/// The maximum number of requests, of allocated devices, and of names of requests.
pub(super) const MAX_REQUESTS: u64 = 32;
/// The maximum number of constraints, configurations or selectors.
pub(super) const MAX_PARTS: u64 = 32;
/// The maximum number of alternatives of a request.
const MAX_ALTERNATIVES: u64 = 8;
/// The maximum length of the parameters of a driver in bytes.
const MAX_OBJECT: usize = 10 * 1024;
/// The maximum length of a pool's name in characters.
const MAX_POOL_NAME: usize = 253;
/// The maximum length of the name of an attribute in characters.
const MAX_ATTRIBUTE_NAME: usize = 32;

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// Defaults the requests of a claim's spec.
pub(super) fn default_claim(spec: &mut Fields) {
    let Some(devices) = part(spec, "devices") else {
        return;
    };
    for request in each(devices, "requests") {
        if let Some(exact) = part(request, "exactly") {
            default_request(exact);
        }
        each(request, "firstAvailable").for_each(default_request);
    }
}

/// Defaults the tolerations of a request or of an allocated device.
pub(super) fn default_tolerations(of: &mut Fields) {
    for toleration in each(of, "tolerations") {
        if toleration.get("operator").is_none_or(|it| *it == "") {
            toleration.insert("operator".to_owned(), "Equal".into());
        }
    }
}

fn default_request(request: &mut Fields) {
    default_tolerations(request);
    fill(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" {
        fill_number(request, "count", 1);
    }
}

/// Validates the items of a list that has a maximum length.
pub(super) fn list<'a>(
    field: &Field<'a>,
    most: u64,
    errors: &mut Errors,
    mut check: impl FnMut(&Field<'a>, &mut Errors),
) {
    let found = field.len() as u64;
    if found > most {
        errors.push(FieldError::too_many(&field.path, found, most));
        return;
    }
    field.items().for_each(|it| check(&it, errors));
}

/// As [`list`], whose items have different keys.
pub(super) fn set<'a>(
    field: &Field<'a>,
    (most, key): (u64, &'a str),
    errors: &mut Errors,
    check: impl FnMut(&Field<'a>, &mut Errors),
) {
    list(field, most, errors, check);
    if field.len() as u64 > most {
        return;
    }
    let mut seen = BTreeSet::new();
    for item in field.items() {
        let text = match key {
            "" => item.text(),
            _ => item.child(key).text(),
        };
        if !seen.insert(text) {
            errors.push(FieldError::duplicate(&item.path, text.into()));
        }
    }
}

/// Validates the spec of a claim.
pub(super) fn claim(spec: &Field<'_>, kube: KubeVersion, errors: &mut Errors) {
    let devices = spec.child("devices");
    let names = RequestNames::of(&devices);
    let requests = devices.child("requests");
    set(&requests, (MAX_REQUESTS, "name"), errors, |it, errors| {
        request(it, kube, errors);
    });
    list(
        &devices.child("constraints"),
        MAX_PARTS,
        errors,
        |it, errors| {
            names.check(&it.child("requests"), errors);
            constraint(it, errors);
        },
    );
    list(&devices.child("config"), MAX_PARTS, errors, |it, errors| {
        names.check(&it.child("requests"), errors);
        configuration(it, errors);
    });
}

fn request(request: &Field<'_>, kube: KubeVersion, errors: &mut Errors) {
    rule::dns_label(&request.child("name"), errors);
    let (exactly, first) = (request.child("exactly"), request.child("firstAvailable"));
    let why = "exactly one of `exactly` or `firstAvailable` is required";
    match (exactly.is_set(), first.len() > 0) {
        (false, false) => errors.push(request.required(why)),
        (true, true) => {
            let why = format!("{why}, but multiple fields are set");
            let path = &request.path;
            errors.push(FieldError::invalid(path, serde_json::Value::Null, why));
        }
        (true, false) => kind_of_device(&exactly, kube, errors),
        (false, true) => {
            set(&first, (MAX_ALTERNATIVES, "name"), errors, |it, errors| {
                rule::dns_label(&it.child("name"), errors);
                kind_of_device(it, kube, errors);
            });
        }
    }
}

/// Validates which devices are requested, and how many.
fn kind_of_device(request: &Field<'_>, kube: KubeVersion, errors: &mut Errors) {
    let class = request.child("deviceClassName");
    if class.text().is_empty() {
        errors.push(class.required(""));
    } else {
        rule::dns_subdomain(&class, errors);
    }
    selectors(&request.child("selectors"), kube, errors);
    let (mode, count) = (request.child("allocationMode"), request.child("count"));
    match mode.text() {
        "All" if count.count() != 0 => {
            let why = "must not be specified when allocationMode is 'All'";
            errors.push(count.invalid(why));
        }
        "All" => {}
        "ExactCount" => rule::above_zero(&count, errors),
        _ => errors.push(mode.not_supported(&["All", "ExactCount"])),
    }
    for toleration in request.child("tolerations").items() {
        self::toleration(&toleration, errors);
    }
}

/// Validates selectors: each has an expression that compiles.
pub(super) fn selectors(field: &Field<'_>, kube: KubeVersion, errors: &mut Errors) {
    list(field, MAX_PARTS, errors, |selector, errors| {
        let cel = selector.child("cel");
        if cel.is_set() {
            let expression = cel.child("expression");
            let (path, text) = (&expression.path, expression.text());
            if let Some(error) = device_selector::error(path, text, kube) {
                errors.push(error);
            }
        } else {
            errors.push(cel.required(""));
        }
    });
}

/// Validates a configuration: parameters of a driver.
pub(super) fn configuration(config: &Field<'_>, errors: &mut Errors) {
    let opaque = config.child("opaque");
    if !opaque.is_set() {
        errors.push(opaque.required(""));
        return;
    }
    driver_name(&opaque.child("driver"), errors);
    object(&opaque.child("parameters"), errors);
}

/// Validates an object whose fields only the driver knows.
pub(super) fn object(field: &Field<'_>, errors: &mut Errors) {
    if !field.is_set() {
        errors.push(field.required(""));
    } else if field.value.to_string().len() > MAX_OBJECT {
        errors.push(FieldError::too_long(&field.path, MAX_OBJECT as u64));
    } else if !field.value.is_object() {
        let why = "must be a valid JSON object";
        let value = "<value omitted>".into();
        errors.push(FieldError::invalid(&field.path, value, why));
    }
}

fn constraint(constraint: &Field<'_>, errors: &mut Errors) {
    let [same, distinct] =
        ["matchAttribute", "distinctAttribute"].map(|it| constraint.child(it));
    match (same.is_set(), distinct.is_set()) {
        (true, _) => attribute(&same, errors),
        (false, true) => attribute(&distinct, errors),
        (false, false) => errors.push(constraint.required(
            "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but \
             multiple fields are set",
        )),
    }
}

/// Validates the name of an attribute with its domain.
fn attribute(field: &Field<'_>, errors: &mut Errors) {
    qualified_name(field, field.text(), errors);
    if !field.text().contains('/') {
        errors.push(field.invalid(
            "a fully qualified name must be a domain and a name separated by a slash",
        ));
    }
}

/// Validates the name of an attribute or a capacity, which may have a domain. As in Kubernetes, a
/// text with several slashes is valid, whatever is between them.
pub(super) fn qualified_name(field: &Field<'_>, text: &str, errors: &mut Errors) {
    let invalid = |value: &str, why: &str| {
        FieldError::invalid(&field.path, value.into(), why.to_owned())
    };
    let (domain, own) = match text.split_once('/') {
        Some((_, rest)) if rest.contains('/') => return,
        Some((domain, own)) => (Some(domain), own),
        None => (None, text),
    };
    match domain {
        Some("") => errors.push(invalid("", "the domain must not be empty")),
        Some(domain) => named_driver(&field.path, domain, errors),
        None => {}
    }
    if own.is_empty() && domain.is_some() {
        errors.push(invalid("", "the name must not be empty"));
        return;
    }
    if own.len() > MAX_ATTRIBUTE_NAME {
        let most = MAX_ATTRIBUTE_NAME as u64;
        errors.push(FieldError::too_long(&field.path, most));
    }
    let is_start = |it: char| it.is_ascii_alphabetic() || it == '_';
    let is_rest = |it: char| is_start(it) || it.is_ascii_digit();
    if !own.starts_with(is_start) || !own.chars().all(is_rest) {
        let why = "a valid C identifier must start with alphabetic character or '_', followed \
                   by a string of alphanumeric characters or '_' (e.g. 'my_name',  or \
                   'MY_NAME',  or 'MyName', regex used for validation is \
                   '[A-Za-z_][A-Za-z0-9_]*')";
        errors.push(invalid(own, why));
    }
}

/// Validates the name of a pool: DNS subdomains, separated by slashes.
pub(super) fn pool_name(field: &Field<'_>, errors: &mut Errors) {
    let text = field.text();
    if text.is_empty() {
        errors.push(field.required(""));
        return;
    }
    if text.len() > MAX_POOL_NAME {
        let most = MAX_POOL_NAME as u64;
        errors.push(FieldError::too_long(&field.path, most));
    }
    for part in text.split('/') {
        let wrong = name::dns_subdomain(part).into_iter();
        let each = |it| FieldError::invalid(&field.path, part.into(), it);
        errors.extend(wrong.map(each));
    }
}

/// Validates a taint of a device.
pub(super) fn taint(taint: &Field<'_>, errors: &mut Errors) {
    rule::qualified_name(&taint.child("key"), errors);
    rule::text_if_set(&taint.child("value"), name::label_value, errors);
    rule::one_of(&taint.child("effect"), &EFFECTS, errors);
}

fn toleration(toleration: &Field<'_>, errors: &mut Errors) {
    rule::text_if_set(&toleration.child("key"), name::label_key, errors);
    let (operator, value) = (toleration.child("operator"), toleration.child("value"));
    match operator.text() {
        "Exists" if !value.text().is_empty() => {
            errors.push(value.invalid("must be empty for operator `Exists`"));
        }
        "Exists" => {}
        "Equal" => rule::text(&value, name::label_value, errors),
        _ => rule::one_of(&operator, &["Equal", "Exists"], errors),
    }
    let effect = toleration.child("effect");
    if !effect.text().is_empty() {
        rule::one_of(&effect, &EFFECTS, errors);
    }
}

/// The names of a claim's requests, with those of their alternatives: `gpu` and `gpu/large`.
pub(super) struct RequestNames(BTreeSet<String>);

impl RequestNames {
    /// The names of the requests of a claim's devices.
    pub(super) fn of(devices: &Field<'_>) -> Self {
        let mut names = BTreeSet::new();
        for request in devices.child("requests").items() {
            let name = request.child("name").text();
            for alternative in request.child("firstAvailable").items() {
                names.insert(format!("{name}/{}", alternative.child("name").text()));
            }
            names.insert(name.to_owned());
        }
        Self(names)
    }

    /// Validates a list of names of requests.
    pub(super) fn check(&self, field: &Field<'_>, errors: &mut Errors) {
        set(field, (MAX_REQUESTS, ""), errors, |it, errors| {
            self.check_one(it, errors);
        });
    }

    /// Validates the name of a request.
    pub(super) fn check_one(&self, field: &Field<'_>, errors: &mut Errors) {
        let text = field.text();
        let why = "must be the name of a request in the claim or the name of a request and a \
                   subrequest separated by '/'";
        let parts: Vec<&str> = text.split('/').collect();
        if parts.len() <= 2 {
            for part in parts {
                let wrong = name::dns_label(part).into_iter();
                errors.extend(wrong.map(|it| field.invalid_text(it)));
            }
        }
        if !self.0.contains(text) {
            errors.push(field.invalid_text(why));
        }
    }
}
