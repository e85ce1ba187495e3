//! The provider specs of a ScheduledMachine or of a class: arbitrary JSON, so that caches keep only their hash.

use fivespot_api::merge;
use fivespot_api::spec_hash::{MachineParts, SpecHash};
use fivespot_plan::{Specs, Step};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use fivespot_runtime::cache::TOO_DEEP;

/// The maximum size of each of the two, in bytes of compact JSON.
pub(crate) const MAX_BYTES: usize = 256 << 10;

/// The maximum size of both together that stays in an object read live, in bytes: many reconciles
/// are under way at a time.
pub(crate) const INLINE: usize = 16 << 10;

/// The fields that have a provider spec each.
const FIELDS: [&str; 2] = ["bootstrapSpec", "infrastructureSpec"];

/// The field of the hash in an object without its provider specs, or of the reason why there is
/// none.
const DIGEST: &str = "providerSpecs";

/// Replaces the provider specs of a parsed ScheduledMachine, which are JSON texts: by their values
/// if they have at most `inline` bytes together, else by `{}`, and their hash is added to the
/// object.
///
/// An object that is invalid without them stays invalid.
pub(crate) fn compact(object: &mut Value, inline: usize) {
    let mut texts = [String::new(), String::new()];
    for (field, text) in FIELDS.into_iter().zip(&mut texts) {
        let Some(spec) = object.pointer_mut(&format!("/spec/{field}/spec")) else {
            return;
        };
        let Value::String(found) = spec.take() else {
            let message = format!(
                "spec.{field}.spec has more than {MAX_BYTES} bytes of JSON; make it smaller"
            );
            clear(object);
            object[DIGEST] = json!({ "tooLarge": message });
            return;
        };
        *text = found;
    }
    let [bootstrap, infrastructure] = &texts;
    if bootstrap.len() + infrastructure.len() <= inline {
        for (field, text) in FIELDS.into_iter().zip(&texts) {
            let spec = serde_json::from_str(text);
            object["spec"][field]["spec"] = spec.unwrap_or_else(|_| TOO_DEEP.into());
        }
        return;
    }
    clear(object);
    let Ok(spec) = MachineParts::deserialize(&object["spec"]) else {
        return;
    };
    match SpecHash::of_texts(&spec, [bootstrap, infrastructure]) {
        Ok(hash) => object[DIGEST] = json!({ "hash": hash.as_str() }),
        // No schema accepts this as a spec.
        Err(_) => object["spec"][FIELDS[0]]["spec"] = TOO_DEEP.into(),
    }
}

/// The field with the spec of the object that this step creates. `None` for other steps.
pub(crate) fn field(step: Step) -> Option<&'static str> {
    let [bootstrap, infrastructure] = FIELDS;
    match step {
        Step::CreateBootstrap => Some(bootstrap),
        Step::CreateInfrastructure => Some(infrastructure),
        _ => None,
    }
}

/// The JSON text of one provider spec of a parsed ScheduledMachine, or class, the infrastructure
/// spec with the patch of the host. `None` if the object does not have this hash.
pub(crate) fn text(
    mut object: Value,
    field: &str,
    host: Option<&Map<String, Value>>,
    hash: Option<&str>,
) -> Option<String> {
    let mut texts = FIELDS.map(|field| match object["spec"][field]["spec"].take() {
        Value::String(text) => Some(text),
        _ => None,
    });
    clear(&mut object);
    let spec = MachineParts::deserialize(&object["spec"]).ok()?;
    let [bootstrap, infrastructure] = &texts;
    let both = [bootstrap.as_deref()?, infrastructure.as_deref()?];
    let mut found = SpecHash::of_texts(&spec, both).ok()?;
    if let Some(patch) = host {
        found = found.on_host(patch);
    }
    if Some(found.as_str()) != hash {
        return None;
    }
    let place = FIELDS.iter().position(|of| *of == field)?;
    let text = texts[place].take()?;
    let Some(patch) = host.filter(|_| field == FIELDS[1]) else {
        return Some(text);
    };
    let mut spec: Map<String, Value> = serde_json::from_str(&text).ok()?;
    merge(&mut spec, patch);
    serde_json::to_string(&spec).ok()
}

/// The JSON text of `object` with this spec, which is JSON text too.
pub(crate) fn with(object: &Value, spec: &str) -> Vec<u8> {
    let mut text = object.to_string();
    if text.pop().is_some() {
        text.push_str(r#","spec":"#);
        text.push_str(spec);
        text.push('}');
    }
    text.into_bytes()
}

fn clear(object: &mut Value) {
    for field in FIELDS {
        object["spec"][field]["spec"] = json!({});
    }
}

/// Where the provider specs of a compacted ScheduledMachine are.
pub(crate) fn of(object: &Value) -> Specs {
    let digest = &object[DIGEST];
    match (digest["hash"].as_str(), digest["tooLarge"].as_str()) {
        (Some(hash), _) => Specs::LeftOut {
            hash: hash.to_owned(),
        },
        (None, Some(message)) => Specs::TooLarge {
            message: message.to_owned(),
        },
        (None, None) => Specs::Included,
    }
}
