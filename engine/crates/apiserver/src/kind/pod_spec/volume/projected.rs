//! Projected volumes.

use std::collections::BTreeSet;

use kubemu_admission::FieldError;

use super::source;
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// The minimum and maximum lifetime of a token in seconds.
const SECONDS: (i64, i64) = (600, 1 << 32);

/// Validates a projected volume.
pub(super) fn projected(volume: &Field<'_>, errors: &mut Errors) {
    rule::file_mode(&volume.child("defaultMode"), errors);
    let mut paths = BTreeSet::new();
    for part in volume.child("sources").items() {
        let mut count = 0;
        for name in ["secret", "configMap"] {
            let of = part.child(name);
            if of.is_set() {
                count += 1;
                keys(volume, &of, &mut paths, errors);
            }
        }
        let downward = part.child("downwardAPI");
        if downward.is_set() {
            count += 1;
            for item in downward.child("items").items() {
                source::downward_file(&item.at(downward.path.clone()), errors);
                let path = item.child("path").text();
                if !path.is_empty() && !paths.insert(path) {
                    errors.push(conflict(volume, path));
                }
            }
        }
        let token = part.child("serviceAccountToken");
        if token.is_set() {
            count += 1;
            account_token(volume, &token, errors);
        }
        for name in ["clusterTrustBundle", "podCertificate"] {
            count += i32::from(part.child(name).is_set());
        }
        if count > 1 {
            let why = "may not specify more than 1 volume type per source";
            errors.push(part.forbidden(why));
        }
    }
}

fn conflict(volume: &Field<'_>, value: &str) -> FieldError {
    let path = volume.path.clone();
    FieldError::invalid(path, value.into(), "conflicting duplicate paths")
}

/// Validates the keys of a secret or of a config map.
fn keys<'a>(
    volume: &Field<'_>,
    of: &Field<'a>,
    paths: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    let name = of.child("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    }
    for item in of.child("items").items() {
        source::key_to_path(&item, errors);
        let path = item.child("path").text();
        if !path.is_empty() && !paths.insert(path) {
            errors.push(conflict(volume, name.text()));
        }
    }
}

fn account_token(volume: &Field<'_>, token: &Field<'_>, errors: &mut Errors) {
    let seconds = token.child("expirationSeconds");
    let (least, most) = SECONDS;
    if seconds.count() < least {
        let why = "may not specify a duration less than 10 minutes";
        errors.push(seconds.invalid(why));
    } else if seconds.count() > most {
        let why = "may not specify a duration larger than 2^32 seconds";
        errors.push(seconds.invalid(why));
    }
    let path = token.child("path").at(volume.path_of("path"));
    if path.text().is_empty() {
        errors.push(path.required(""));
    } else {
        rule::local_file(&path, errors);
    }
}
