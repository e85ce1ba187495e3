//! The expressions that select devices for a ResourceClaim: those of
//! `k8s.io/dynamic-resource-allocation/cel`.

use kubemu_cel::{Bounds, Env, ObjectType, Program, Type};

use crate::crd_rules::compilation_failed;
use crate::{FieldError, KubeVersion};

/// `CELSelectorExpressionMaxLength`, in bytes.
const MAX_LENGTH: usize = 10 * 1024;
/// `CELSelectorExpressionMaxCost`.
const MAX_COST: u64 = 1_000_000;
/// `ResourceSliceMaxAttributesAndCapacitiesPerDevice`.
const MAX_ATTRIBUTES: u64 = 32;
/// `DeviceAttributeMaxValueLength`.
const MAX_VALUE: u64 = 64;
/// `DeviceMaxDomainLength`.
const MAX_DOMAIN: u64 = 63;
/// `DeviceMaxIDLength`.
const MAX_NAME: u64 = 32;
/// `DriverNameMaxLength`.
const MAX_DRIVER: u64 = 63;

/// Why the API server rejects `expression` at `path`: it is too long, does not compile, has another
/// type than `bool`, or may cost too much. `None` if it is valid.
///
/// # Example
/// ```
/// use kubemu_admission::{KubeVersion, device_selector};
/// let error = |expression| {
///     let error = device_selector::error("expression", expression, KubeVersion::default());
///     error.map(|error| error.detail)
/// };
/// assert_eq!(error("device.driver == 'gpu.example.com'"), None);
/// assert_eq!(
///     error("device.driver").as_deref(),
///     Some("must evaluate to bool or the unknown type, not string")
/// );
/// ```
pub fn error(
    path: impl Into<String>,
    expression: &str,
    kube: KubeVersion,
) -> Option<FieldError> {
    if expression.len() > MAX_LENGTH {
        return Some(FieldError::too_long(path, MAX_LENGTH as u64));
    }
    let env = Env::new(kube.dialect_of_new()).with_bindings();
    let env = env.variable("device", device(kube));
    let program = match Program::compile(expression, &env) {
        Ok(program) => program,
        Err(errors) => {
            let why = compilation_failed("", &errors);
            return Some(FieldError::invalid(path, expression.into(), why));
        }
    };
    let output = program.output_type();
    if !matches!(output, Type::Bool | Type::Any) {
        let why = format!("must evaluate to bool or the unknown type, not {output}");
        return Some(FieldError::invalid(path, expression.into(), why));
    }
    let exceeds_cost = program.estimate(&bounds()).max > MAX_COST;
    exceeds_cost.then(|| FieldError::forbidden(path, "too complex, exceeds cost limit"))
}

fn device(kube: KubeVersion) -> Type {
    let of_domain = |value| Type::map(Type::map(value));
    let mut fields = vec![
        ("driver", Type::String),
        ("attributes", of_domain(Type::Any)),
        (
            "capacity",
            of_domain(Type::named_abstract("kubernetes.Quantity")),
        ),
    ];
    // DRAConsumableCapacity is on by default from 1.36 on.
    if kube.is_at_least(36) {
        fields.push(("allowMultipleAllocations", Type::Bool));
    }
    Type::object(ObjectType::new(fields).named("kubernetes.DRADevice"))
}

fn bounds() -> Bounds {
    let of_name = |size| Bounds::map_of(MAX_ATTRIBUTES, MAX_NAME, Bounds::of_size(size));
    let of_domain = |inner| Bounds::map_of(MAX_ATTRIBUTES, MAX_DOMAIN, inner);
    let device = [
        ("driver", Bounds::of_size(MAX_DRIVER)),
        ("allowMultipleAllocations", Bounds::of_size(1)),
        ("attributes", of_domain(of_name(MAX_VALUE).with_fields())),
        ("capacity", of_domain(of_name(0))),
    ];
    Bounds::object(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(expression: &str) -> Option<String> {
        let found = error("expression", expression, KubeVersion::default());
        found.map(|found| found.detail)
    }

    #[test]
    fn what_selects_devices_is_accepted() {
        let accepted = [
            "device.driver == 'gpu.example.com'",
            "device.attributes['gpu.example.com'].model == 'a100'",
            "device.attributes['gpu.example.com'].ecc",
            "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('1Gi'))",
            "cel.bind(gpu, device.attributes['gpu.example.com'], gpu.ecc && gpu.model == 'a')",
            "semver(device.driver).isLessThan(semver('1.0.0'))",
            "device.allowMultipleAllocations",
            "'a' in device.attributes['gpu.example.com'].models",
            "device.attributes['gpu.example.com'].a < device.attributes['gpu.example.com'].b",
            "device.attributes.all(domain, domain.endsWith('.example.com'))",
        ];
        for expression in accepted {
            assert_eq!(detail(expression), None, "{expression}");
        }
    }

    #[test]
    fn what_selects_none_says_why() {
        let refused = [
            (
                "device.",
                "compilation failed: ERROR: <input>:1:8: Syntax error",
            ),
            (
                "device.color == 'red'",
                "compilation failed: ERROR: <input>:1:7: undefined field",
            ),
            (
                "object.kind == ''",
                "compilation failed: ERROR: <input>:1:1: undeclared reference",
            ),
            (
                "cel.bind('a', 1, true)",
                "compilation failed: ERROR: <input>:1:10: cel.bind() variable",
            ),
            (
                "device",
                "must evaluate to bool or the unknown type, not kubernetes.DRADevice",
            ),
            ("1", "must evaluate to bool or the unknown type, not int"),
            (
                "device.attributes['gpu.example.com'].model.size",
                "must evaluate to bool or the unknown type, not dyn",
            ),
            (
                "device.attributes['gpu.example.com'].models.exists(model, model == 'a')",
                "compilation failed: ERROR: <input>:1:37: expression of type 'any' cannot be \
                 range of a comprehension",
            ),
        ];
        for (expression, why) in refused {
            let found = detail(expression).unwrap_or_default();
            assert!(found.starts_with(why), "{expression}: {found}");
        }
        let nested = "device.attributes.all(a, device.attributes.all(b, \
                      device.attributes.all(c, device.attributes.all(d, a + b + c + d != ''))))";
        assert_eq!(
            detail(nested).as_deref(),
            Some("too complex, exceeds cost limit")
        );
        let long = format!("'{}' == ''", "a".repeat(MAX_LENGTH));
        assert_eq!(
            detail(&long).as_deref(),
            Some("may not be more than 10240 bytes")
        );
    }

    #[test]
    fn a_field_is_unknown_before_the_release_that_has_it() {
        let before: KubeVersion = "1.35".parse().unwrap();
        let found = error("expression", "device.allowMultipleAllocations", before);
        assert!(found.unwrap().detail.contains("undefined field"));
    }
}
