//! Changes of three definitions.

use serde_json::{Value, json};

use crate::{differences, fixture, report};

/// A change of one keyword: the definition, the place in the schema of the first version, the
/// keyword, its new value (null removes it), and how the sides differ then.
type Seed = (
    &'static str,
    &'static str,
    &'static str,
    Value,
    &'static str,
);

const CERTIFICATES: &str = "certificates";
const ROUTES: &str = "routes";
const FLEETS: &str = "fleets";
const RULES: &str = "x-kubernetes-validations";

fn of_certificates() -> Vec<Seed> {
    let rows = [
        ("spec.secretName", "maxLength", json!(62), "refused"),
        ("spec.secretName", "maxLength", json!(64), "admitted"),
        ("spec.secretName", "minLength", json!(2), "refused"),
        (
            "spec.secretName",
            "pattern",
            json!("^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"),
            "admitted",
        ),
        (
            "spec.secretName",
            "pattern",
            json!("^[a-z]([-a-z0-9]*[a-z0-9])?$"),
            "refused",
        ),
        ("spec.secretName", "pattern", Value::Null, "admitted"),
        ("spec", "required", json!(["secretName"]), "admitted"),
        (
            "spec",
            "required",
            json!(["secretName", "issuerRef", "duration"]),
            "refused",
        ),
        ("spec.commonName", "maxLength", Value::Null, "admitted"),
        ("spec.commonName", "type", json!("integer"), "refused"),
        ("spec.commonName", "nullable", json!(true), "stored"),
        ("spec.commonName", "default", json!("example.com"), "stored"),
        ("spec.commonName", "", Value::Null, "refused"),
        ("spec.serial", "", json!({"type": "integer"}), "admitted"),
        ("spec.dnsNames", "minItems", json!(0), "admitted"),
        ("spec.dnsNames", "maxItems", json!(49), "refused"),
        (
            "spec.dnsNames",
            "x-kubernetes-list-type",
            json!("atomic"),
            "admitted",
        ),
        ("spec.dnsNames[]", "maxLength", json!(200), "refused"),
        ("spec.dnsNames[]", "minLength", json!(1), "refused"),
        ("spec.ipAddresses[]", "format", json!("ipv6"), "refused"),
        ("spec.ipAddresses[]", "format", Value::Null, "admitted"),
        ("spec.renewBefore", "format", Value::Null, "refused"),
        ("spec.isCA", "default", json!(true), "stored"),
        ("spec.revisionHistoryLimit", "minimum", json!(0), "admitted"),
        ("spec.revisionHistoryLimit", "maximum", json!(99), "refused"),
        (
            "spec.revisionHistoryLimit",
            "exclusiveMaximum",
            json!(true),
            "refused",
        ),
        ("spec.issuerRef.kind", "enum", json!(["Issuer"]), "refused"),
        (
            "spec.issuerRef.kind",
            "enum",
            json!(["Issuer", "ClusterIssuer", "Vault"]),
            "admitted",
        ),
        (
            "spec.issuerRef.kind",
            "default",
            json!("ClusterIssuer"),
            "stored",
        ),
        (
            "spec.issuerRef",
            "required",
            json!(["name", "group"]),
            "refused",
        ),
        ("spec.privateKey.size", "multipleOf", json!(256), "refused"),
        (
            "spec.privateKey.size",
            "multipleOf",
            Value::Null,
            "admitted",
        ),
        ("spec.privateKey.size", "maximum", json!(4096), "refused"),
        (
            "spec.privateKey.rotation",
            "enum",
            json!(["Never", "Always"]),
            "refused",
        ),
        (
            "spec.secretTemplate.labels",
            "maxProperties",
            json!(7),
            "refused",
        ),
        (
            "spec.secretTemplate.labels{}",
            "maxLength",
            json!(64),
            "admitted",
        ),
        (
            "spec.secretTemplate.annotations{}",
            "type",
            json!("integer"),
            "refused",
        ),
        (
            "spec.secretTemplate",
            "x-kubernetes-preserve-unknown-fields",
            json!(true),
            "admitted",
        ),
        (
            "spec.privateKey",
            RULES,
            json!([{"rule": "self.algorithm != 'ECDSA' || !has(self.size) || self.size <= 384"}, {"rule": "self.algorithm != 'Ed25519' || !has(self.size)"}]),
            "refused",
        ),
        (
            "spec.privateKey",
            RULES,
            json!([{"rule": "self.algorithm != 'ECDSA' || !has(self.size) || self.size <= 512"}]),
            "admitted",
        ),
        (
            "spec",
            RULES,
            json!([{"rule": "has(self.dnsNames)"}, {"rule": "self.secretName == oldSelf.secretName"}]),
            "refused",
        ),
        (
            "spec",
            RULES,
            json!([{"rule": "has(self.dnsNames) || has(self.ipAddresses)"}, {"rule": "!has(self.renewBefore) || has(self.duration) && duration(self.renewBefore) <= duration(self.duration)"}, {"rule": "self.secretName == oldSelf.secretName"}]),
            "admitted",
        ),
        (
            "spec",
            RULES,
            json!([{"rule": "has(self.dnsNames) || has(self.ipAddresses)"}, {"rule": "!has(self.renewBefore) || has(self.duration) && duration(self.renewBefore) < duration(self.duration)"}]),
            "admitted",
        ),
        (
            "spec.duration",
            RULES,
            json!([{"rule": "self.matches('^[0-9]+[hm]$')"}]),
            "admitted",
        ),
        (
            "spec.duration",
            RULES,
            json!([{"rule": "self.matches('^[0-9]+h$')"}, {"rule": "!self.matches('^[0-9]+h$') || duration(self) >= duration('24h')"}]),
            "refused",
        ),
    ];
    rows.map(|(at, keyword, value, found)| (CERTIFICATES, at, keyword, value, found))
        .into()
}

fn of_routes() -> Vec<Seed> {
    let rows = [
        (
            "spec.hostnames[]",
            "pattern",
            json!(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
            "refused",
        ),
        ("spec.hostnames", "maxItems", json!(17), "admitted"),
        ("spec.port", "pattern", Value::Null, "admitted"),
        ("spec.port", "pattern", json!("^[a-z0-9]+$"), "admitted"),
        ("spec.rules", "minItems", json!(2), "refused"),
        ("spec.rules", "maxItems", json!(15), "refused"),
        (
            "spec.rules[].path.value",
            "pattern",
            json!("^/[a-z]*$"),
            "refused",
        ),
        (
            "spec.rules[].path.value",
            "maxLength",
            json!(1025),
            "admitted",
        ),
        (
            "spec.rules[].path.type",
            "default",
            json!("Exact"),
            "stored",
        ),
        ("spec.rules[].path", RULES, json!([]), "admitted"),
        (
            "spec.rules[].path",
            RULES,
            json!([{"rule": "!self.value.contains('//')"}]),
            "refused",
        ),
        (
            "spec.rules[].path",
            RULES,
            json!([{"rule": "self.type == 'RegularExpression' || !self.value.contains('//')"}, {"rule": "self.type != 'Exact' || !self.value.endsWith('/')"}]),
            "refused",
        ),
        (
            "spec.rules[].backends",
            "x-kubernetes-list-map-keys",
            json!(["name"]),
            "refused",
        ),
        (
            "spec.rules[].backends",
            "x-kubernetes-list-type",
            json!("atomic"),
            "admitted",
        ),
        ("spec.rules[].backends", RULES, json!([]), "admitted"),
        (
            "spec.rules[].backends",
            RULES,
            json!([{"rule": "self.all(b, b.weight > 0)"}]),
            "refused",
        ),
        (
            "spec.rules[].backends[].port",
            "maximum",
            json!(65534),
            "refused",
        ),
        (
            "spec.rules[].backends[].port",
            "minimum",
            json!(0),
            "admitted",
        ),
        (
            "spec.rules[].backends[].weight",
            "default",
            json!(0),
            "refused",
        ),
        (
            "spec.rules[].timeouts.request",
            "pattern",
            json!("^[0-9]{1,4}(h|m|s|ms)$"),
            "refused",
        ),
        (
            "spec.rules[].timeouts.retries",
            "exclusiveMaximum",
            Value::Null,
            "admitted",
        ),
        (
            "spec.rules[].timeouts.retries",
            "type",
            json!("integer"),
            "refused",
        ),
        ("spec.rules[].headers{}", "maxLength", json!(63), "refused"),
        (
            "spec.rules[].headers",
            "additionalProperties",
            json!({"type": "string", "enum": ["a"]}),
            "refused",
        ),
        ("spec.rules", RULES, json!([]), "admitted"),
        ("spec.mirror", "nullable", Value::Null, "stored"),
        (
            "spec.mirror",
            RULES,
            json!([{"rule": "has(self.percent) != (has(self.numerator) && has(self.denominator))"}]),
            "admitted",
        ),
        (
            "spec.mirror",
            RULES,
            json!([{"rule": "has(self.percent) != (has(self.numerator) && has(self.denominator))"}, {"rule": "!has(self.numerator) || !has(self.denominator) || self.numerator < self.denominator"}]),
            "refused",
        ),
        ("spec.mirror.percent", "maximum", json!(99), "refused"),
    ];
    rows.map(|(at, keyword, value, found)| (ROUTES, at, keyword, value, found))
        .into()
}

fn of_fleets() -> Vec<Seed> {
    let pool = "self.pools.all(p, self.pools[p].size <= 100)";
    let bounds = "!has(self.replicas) || self.replicas >= self.minReplicas && self.replicas <= self.maxReplicas";
    let order = "self.minReplicas <= self.maxReplicas";
    let zone = "!has(oldSelf.network.zone) || has(self.network.zone)";
    let rules =
        |all: &[&str]| -> Value { all.iter().map(|it| json!({"rule": it})).collect() };
    let rows = [
        ("metadata.name", "maxLength", json!(39), "refused"),
        ("spec.replicas", "minimum", Value::Null, "none"),
        ("spec.minReplicas", "default", json!(1), "refused"),
        ("spec.maxReplicas", "maximum", json!(999), "refused"),
        ("spec.network", "minProperties", json!(2), "refused"),
        ("spec.network.cidr", "format", Value::Null, "admitted"),
        (
            "spec.network.zone",
            "pattern",
            json!("^[a-z]{2}-[a-z]+-[1-9]$"),
            "refused",
        ),
        ("spec.network.mtu", "minimum", json!(576), "admitted"),
        (
            "spec.network",
            "allOf",
            json!([{"anyOf": [{"required": ["cidr"]}, {"required": ["zone"]}]}]),
            "admitted",
        ),
        (
            "spec.network",
            "allOf",
            json!([{"not": {"required": ["gateway", "natted"]}}, {"oneOf": [{"required": ["cidr"]}, {"required": ["zone"]}]}]),
            "refused",
        ),
        ("spec.pools", "maxProperties", json!(9), "refused"),
        ("spec.pools", "default", Value::Null, "refused"),
        ("spec.pools{}.labels", "maxProperties", json!(6), "admitted"),
        (
            "spec.pools{}.taint",
            "enum",
            json!(["NoSchedule", "NoExecute"]),
            "refused",
        ),
        (
            "spec.template",
            "x-kubernetes-embedded-resource",
            Value::Null,
            "admitted",
        ),
        (
            "spec.template",
            "properties",
            json!({"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}),
            "refused",
        ),
        ("spec.ratio", "multipleOf", json!(0.5), "refused"),
        ("spec.ratio", "maximum", json!(1.5), "admitted"),
        ("spec.paused", "type", json!("string"), "refused"),
        (
            "spec.tags",
            RULES,
            json!([{"rule": "self.all(t, t.startsWith('fleet'))"}]),
            "admitted",
        ),
        (
            "spec.tags",
            RULES,
            json!([{"rule": "self.exists(t, t.startsWith('fleet-'))"}]),
            "refused",
        ),
        (
            "spec.memory",
            RULES,
            json!([{"rule": "isQuantity(self) && quantity(self).compareTo(quantity('2Gi')) >= 0"}]),
            "refused",
        ),
        (
            "spec",
            RULES,
            rules(&[
                order,
                bounds,
                "self.pools.all(p, self.pools[p].size <= 200)",
                zone,
            ]),
            "admitted",
        ),
        ("spec", RULES, rules(&[bounds, pool, zone]), "admitted"),
        (
            "spec",
            RULES,
            rules(&[
                order,
                "!has(self.replicas) || self.replicas <= self.maxReplicas",
                pool,
                zone,
            ]),
            "admitted",
        ),
        ("spec", RULES, rules(&[order, bounds, pool]), "admitted"),
        (
            "spec",
            RULES,
            rules(&[
                order,
                bounds,
                pool,
                zone,
                "!has(self.paused) || !self.paused || self.minReplicas == 0",
            ]),
            "refused",
        ),
        (
            "spec",
            RULES,
            rules(&[order, bounds, pool, zone, "self.template.kind != 'Pod'"]),
            "refused",
        ),
    ];
    rows.map(|(at, keyword, value, found)| (FLEETS, at, keyword, value, found))
        .into()
}

/// The node of a schema at a place such as `spec.list[].name`.
fn node<'a>(root: &'a mut Value, place: &str) -> &'a mut Value {
    let mut node = root;
    for part in place.split('.') {
        let name = part.trim_end_matches(['[', ']', '{', '}']);
        node = &mut node["properties"][name];
        if part.ends_with("[]") {
            node = &mut node["items"];
        }
        if part.ends_with("{}") {
            node = &mut node["additionalProperties"];
        }
    }
    node
}

fn changed((definition, place, keyword, value, _): &Seed) -> [Value; 2] {
    let old = fixture(definition);
    let mut new = old.clone();
    let schema = &mut new["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    if keyword.is_empty() {
        let (parent, name) = place.rsplit_once('.').unwrap();
        let fields = &mut node(schema, parent)["properties"];
        match value {
            Value::Null => drop(fields.as_object_mut().unwrap().shift_remove(name)),
            value => fields[name] = value.clone(),
        }
    } else if value.is_null() {
        let node = node(schema, place).as_object_mut().unwrap();
        node.shift_remove(*keyword).unwrap();
    } else {
        node(schema, place)[*keyword] = value.clone();
        if *keyword == "type" {
            // A server refuses bounds of other types.
            let node = node(schema, place).as_object_mut().unwrap();
            node.retain(|name, _| !name.starts_with("max"));
        }
        if *value == "atomic" {
            let node = node(schema, place).as_object_mut().unwrap();
            node.shift_remove("x-kubernetes-list-map-keys");
        }
    }
    [old, new]
}

fn check(seeds: &[Seed]) {
    let mut missed = Vec::new();
    for seed in seeds {
        let (definition, place, keyword, value, wanted) = seed;
        let [old, new] = changed(seed);
        let report = report(&old.to_string(), &new.to_string(), &["--budget", "6000"]);
        let found = differences(&report);
        let is_right = match *wanted {
            "none" => found.is_empty(),
            wanted => found.contains(&wanted),
        };
        if !is_right {
            let requests = &report["items"][0]["requests"];
            missed.push(format!(
                "{definition} {place} {keyword} {value}: {found:?}, not {wanted}; {requests} {}",
                report["items"][0]["notCovered"]
            ));
        }
    }
    assert!(missed.is_empty(), "{}\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn each_change_of_a_certificate_is_found() {
    check(&of_certificates());
}

#[test]
fn each_change_of_a_route_is_found() {
    check(&of_routes());
}

#[test]
fn each_change_of_a_fleet_is_found() {
    check(&of_fleets());
}

/// Several rules about one text, and two fields that are required together.
#[test]
fn an_object_of_a_real_definition_is_generated() {
    let old = fixture("../../../admission/tests/sample/definition").to_string();
    let changes = [
        (
            "duration(self) <= duration('168h')",
            "duration(self) <= duration('169h')",
            "admitted",
        ),
        ("[A-Za-z0-9._-]{0,62}", "[A-Za-z0-9._-]{0,61}", "refused"),
        (
            "(Template|Cluster|List|Identity)",
            "(Template|Cluster|List)",
            "admitted",
        ),
    ];
    for (before, after, wanted) in changes {
        let new = old.replacen(before, after, 1);
        assert_ne!(old, new);
        let report = report(&old, &new, &["--budget", "12000"]);
        assert!(
            differences(&report).contains(&wanted),
            "{before}: {report:#}"
        );
    }
}
