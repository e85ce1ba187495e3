//! What drivers report about the allocated devices of a claim.

use std::collections::BTreeSet;

use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::place;
use crate::kind::field::{Errors, Field};
use crate::kind::pod_spec::default::part;
use crate::kind::{column, device, go_struct, rule};
use crate::meta;

/// The maximum number of conditions and of addresses of a device.
const MAX_CONDITIONS: u64 = 8;
const MAX_ADDRESSES: u64 = 16;

/// The maximum length of names in bytes.
const MAX_INTERFACE_NAME: u64 = 256;
const MAX_HARDWARE_ADDRESS: u64 = 128;

/// What tells an allocated device, or a share of one, from the others of a claim.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Id<'a>([&'a str; 4]);

impl<'a> Id<'a> {
    fn of(device: &'a Value) -> Self {
        let fields = ["driver", "pool", "device", "shareID"];
        Self(fields.map(|it| device[it].as_str().unwrap_or_default()))
    }

    /// The Go struct.
    fn text(&self) -> String {
        let Self([driver, pool, device, share]) = self;
        json!({"Driver": driver, "Pool": pool, "Device": device, "ShareID": share})
            .to_string()
    }

    /// The devices of an allocation.
    fn allocated(allocation: &'a Value) -> BTreeSet<Self> {
        let results = column::list(&allocation["devices"]["results"]);
        results.iter().map(Self::of).collect()
    }
}

/// Drops what is reported about devices that a write to the status takes away from the claim.
pub(super) fn drop_deallocated(object: &mut Value, old: &Value) {
    let new_allocation = object["status"]["allocation"].clone();
    let mut gone = Id::allocated(&old["status"]["allocation"]);
    for kept in Id::allocated(&new_allocation) {
        gone.remove(&kept);
    }
    let Some(status) = part(meta::fields(object), "status") else {
        return;
    };
    if let Some(Value::Array(devices)) = status.get_mut("devices") {
        devices.retain(|it| !gone.contains(&Id::of(it)));
        if devices.is_empty() {
            status.shift_remove("devices");
        }
    }
}

/// Validates what is reported about devices, which must be allocated.
pub(super) fn devices(reported: &Field<'_>, allocation: &Value, errors: &mut Errors) {
    let allocated = Id::allocated(allocation);
    let mut seen = BTreeSet::new();
    for device in reported.items() {
        let id = Id::of(device.value);
        place(&device, errors);
        share_id(&device.child("shareID"), errors);
        if !allocated.contains(&id) {
            let why = "must be an allocated device in the claim";
            errors.push(go_struct::invalid(&device, &id.text(), why));
        }
        conditions(&device.child("conditions"), errors);
        let data = device.child("data");
        if data.is_set() {
            device::object(&data, errors);
        }
        network(&device.child("networkData"), errors);
        if seen.contains(&id) {
            errors.push(go_struct::duplicate(&device, &id.text()));
        }
        seen.insert(id);
    }
}

fn share_id(id: &Field<'_>, errors: &mut Errors) {
    if !id.is_set() {
        return;
    }
    if let Some(why) = uuid_error(id.text()) {
        errors.push(id.invalid_text(format!("error validating uid: {why}")));
    } else if id.text().len() != 36 || id.text().bytes().any(|it| it.is_ascii_uppercase())
    {
        errors.push(id.invalid_text(
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` \
             with lowercase hexadecimal characters",
        ));
    }
}

/// Why a text is no UUID (`uuid.Validate` in github.com/google/uuid), which may be without hyphens.
fn uuid_error(text: &str) -> Option<String> {
    let is_hyphen = |at: usize| text.len() == 36 && matches!(at, 8 | 13 | 18 | 23);
    if !matches!(text.len(), 32 | 36) {
        return Some(format!("invalid UUID length: {}", text.len()));
    }
    let is_valid = text.bytes().enumerate().all(|(at, it)| match it {
        b'-' => is_hyphen(at),
        _ => it.is_ascii_hexdigit() && !is_hyphen(at),
    });
    (!is_valid).then(|| "invalid UUID format".to_owned())
}

fn conditions(conditions: &Field<'_>, errors: &mut Errors) {
    let found = conditions.len() as u64;
    if found > MAX_CONDITIONS {
        errors.push(FieldError::too_many(
            &conditions.path,
            found,
            MAX_CONDITIONS,
        ));
    }
    rule::conditions(conditions, errors);
}

fn network(data: &Field<'_>, errors: &mut Errors) {
    let names = [
        ("interfaceName", MAX_INTERFACE_NAME),
        ("hardwareAddress", MAX_HARDWARE_ADDRESS),
    ];
    for (name, most) in names {
        let name = data.child(name);
        if name.text().len() as u64 > most {
            errors.push(FieldError::too_long(&name.path, most));
        }
    }
    let addresses = data.child("ips");
    device::set(
        &addresses,
        (MAX_ADDRESSES, ""),
        errors,
        rule::interface_address,
    );
}
