//! Questions about texts: how formats, patterns, bounds and the functions of expressions handle
//! texts that are almost valid.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::definition;
use super::{almost_valid_text, policy};
use kubemu_judge::random::Random;

/// Formats of a schema, with the form of the texts that are almost valid.
const FORMATS: &[(&str, &str)] = &[
    ("uri", "url"),
    ("hostname", "host"),
    ("ipv4", "ip"),
    ("ipv6", "ip"),
    ("cidr", "cidr"),
    ("mac", "mac"),
    ("duration", "duration"),
    ("date-time", "time"),
    ("datetime", "time"),
    ("date", "date"),
    ("uuid", "uuid"),
    ("uuid3", "uuid"),
    ("uuid4", "uuid"),
    ("uuid5", "uuid"),
    ("email", "email"),
    ("byte", "byte"),
    ("isbn", "serial"),
    ("isbn10", "serial"),
    ("isbn13", "serial"),
    ("creditcard", "serial"),
    ("ssn", "serial"),
    ("bsonobjectid", "serial"),
    ("hexcolor", "serial"),
    ("rgbcolor", "serial"),
    ("k8s-short-name", "name"),
    ("k8s-long-name", "name"),
];

/// Boolean expressions about texts; `{form}` is a text that is almost of that form.
const TESTS: &[&str] = &[
    "isURL({url})",
    "isIP({ip})",
    "ip.isCanonical({ip})",
    "ip({ip}).isGlobalUnicast()",
    "isCIDR({cidr})",
    "cidr({cidr}).containsIP({ip})",
    "cidr({cidr}).containsCIDR({cidr})",
    "isQuantity({quantity})",
    "quantity({quantity}).isInteger()",
    "isSemver({semver})",
    "isSemver({semver}, true)",
    "{text}.matches({pattern})",
    "{text} < {text}",
];

/// Expressions that return other values from texts.
const FUNCTIONS: &[&str] = &[
    "url({url}).getHost()",
    "url({url}).getHostname()",
    "url({url}).getPort()",
    "url({url}).getScheme()",
    "url({url}).getEscapedPath()",
    "url({url}).getQuery()",
    "string(ip({ip}))",
    "ip({ip}).family()",
    "string(cidr({cidr}).masked())",
    "cidr({cidr}).prefixLength()",
    "quantity({quantity}).asInteger()",
    "quantity({quantity}).asApproximateFloat()",
    "quantity({quantity}).compareTo(quantity({quantity}))",
    "quantity({quantity}).add(quantity({quantity})).asApproximateFloat()",
    "quantity({quantity}).sub(quantity({quantity})).compareTo(quantity({quantity}))",
    "sign(quantity({quantity}))",
    "duration({duration})",
    "duration({duration}).getHours()",
    "duration({duration}) + duration({duration})",
    "timestamp({time})",
    "timestamp({time}) + duration({duration})",
    "timestamp({time}).getDayOfYear({zone})",
    "timestamp({time}) - timestamp({time})",
    "timestamp('2024-03-31T00:30:00Z').getHours({zone})",
    "int({number})",
    "uint({number})",
    "double({number})",
    "bool({number})",
    "string(bytes({text}))",
    "semver({semver}).compareTo(semver({semver}))",
    "semver({semver}, true).minor()",
    "format.dns1123Label().validate({name}).orValue(['right'])",
    "format.dns1123Subdomain().validate({name}).orValue(['right'])",
    "format.dns1035Label().validate({name}).orValue(['right'])",
    "format.qualifiedName().validate({name}).orValue(['right'])",
    "format.labelValue().validate({name}).orValue(['right'])",
    "format.dns1123LabelPrefix().validate({name}).orValue(['right'])",
    "format.uri().validate({url}).orValue(['right'])",
    "format.uuid().validate({uuid}).orValue(['right'])",
    "format.byte().validate({byte}).orValue(['right'])",
    "format.date().validate({date}).orValue(['right'])",
    "format.datetime().validate({time}).orValue(['right'])",
    "{host}.find({pattern})",
    "{url}.findAll({pattern})",
    "{text}.findAll({pattern}, 2)",
    "{text}.split({text})",
    "{text}.replace({text}, {host})",
    "{text}.upperAscii() + {text}.lowerAscii()",
    "{text}.trim()",
    "{text}.indexOf({text})",
    "{text}.lastIndexOf({text})",
    "{text}.substring(1)",
    "{text}.charAt(1)",
    "size({text})",
    "strings.quote({text})",
    "{directive}.format([1, 'a', 2.5])",
    "{directive}.format(['a', 1.5, [1, 2]])",
];

/// The form of texts that are almost valid in a format.
pub(super) fn form_of(format: &str) -> Option<&'static str> {
    let known = FORMATS.iter().find(|(name, _)| *name == format);
    known.map(|(_, form)| *form)
}

/// A question about texts.
pub(super) fn question(random: &mut Random) -> Value {
    match random.below(4) {
        0 => formats(random),
        1 => patterns(random),
        2 => bounds(random),
        _ => functions(random),
    }
}

/// Fields, each with a format and almost valid values.
fn formats(random: &mut Random) -> Value {
    let mut fields = Map::new();
    let mut forms = Vec::new();
    for at in 0..8 {
        let (format, form) = random.pick(FORMATS);
        let name = format!("f{at}");
        fields.insert(name.clone(), json!({"type": "string", "format": format}));
        forms.push((name, form));
    }
    writes(random, fields, |random| {
        let values = forms.iter().map(|(name, form)| {
            let form = if random.chance(5) { "text" } else { form };
            (name.clone(), json!(almost_valid_text::near(random, form)))
        });
        values.collect()
    })
}

/// A field with a pattern, and texts that may match it.
fn patterns(random: &mut Random) -> Value {
    let mut pattern = almost_valid_text::near(random, "pattern");
    if random.chance(30) {
        pattern.push_str(&almost_valid_text::near(random, "pattern"));
    }
    let mut fields = Map::new();
    fields.insert(
        "p".to_owned(),
        json!({"type": "string", "pattern": pattern}),
    );
    writes(random, fields, |random| {
        let value = match random.below(4) {
            0 => almost_valid_text::near(random, "pattern"),
            1 => almost_valid_text::near(random, "text"),
            2 => almost_valid_text::near(random, "host"),
            _ => almost_valid_text::any(random),
        };
        [("p".to_owned(), json!(value))].into_iter().collect()
    })
}

/// Numbers with bounds at the limits of a type.
fn bounds(random: &mut Random) -> Value {
    let mut fields = Map::new();
    for at in 0..4 {
        let mut node = json!({"type": random.pick(&["integer", "number"])});
        if random.chance(40) {
            node["format"] = json!(random.pick(&["int32", "int64", "float", "double"]));
        }
        let rule = random.pick(&["minimum", "maximum", "multipleOf"]);
        node[rule] = number(random);
        if random.chance(20) {
            node[random.pick(&["exclusiveMinimum", "exclusiveMaximum"])] = json!(true);
        }
        fields.insert(format!("n{at}"), node);
    }
    writes(random, fields, |random| {
        let values = (0..4).map(|at| (format!("n{at}"), number(random)));
        values.collect()
    })
}

fn number(random: &mut Random) -> Value {
    let fraction = [0.1, 0.3, 2.5, 1e-7, 1e21, 1e300, 3.4e38, -0.5, 4.0];
    if random.chance(35) {
        json!(random.pick(&fraction))
    } else {
        json!(almost_valid_text::border(random))
    }
}

/// A definition with these fields in its spec, and objects of it.
fn writes(
    random: &mut Random,
    fields: Map<String, Value>,
    values: impl Fn(&mut Random) -> Map<String, Value>,
) -> Value {
    let schema = json!({"type": "object", "properties":
        {"spec": {"type": "object", "properties": fields}}});
    let writes: Vec<_> = (0..6)
        .map(|_| {
            json!({"operation": "CREATE", "object": {
                "apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": "w", "namespace": "n"}, "spec": values(random)}})
        })
        .collect();
    json!({"definition": definition::plain(&schema), "writes": writes})
}

/// Policies with an expression about texts each, and objects with such texts. A true expression
/// admits the object; the value of another expression is in the message of the rejection.
fn functions(random: &mut Random) -> Value {
    let (mut policies, mut bindings, mut requests) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..8 {
        let mut forms = Vec::new();
        let validation = if random.chance(40) {
            json!({"expression": placed(random.pick(TESTS), &mut forms)})
        } else {
            let made = placed(random.pick(FUNCTIONS), &mut forms);
            let shown = format!("'%s'.format([{made}])");
            json!({"expression": format!("{shown} == ''"),
                "messageExpression": format!("'gives ' + {shown}")})
        };
        let (name, resource) = (format!("p{at}"), format!("kind{at}s"));
        // With `Ignore`, an error and a value give different verdicts.
        let on_error = random.pick(&["Fail", "Ignore"]);
        policies.push(policy::of(
            &name,
            &json!({"validations": [validation],
            "failurePolicy": on_error, "matchConstraints": {"resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource],
                    "operations": ["*"]}]}}),
        ));
        bindings.push(policy::binding_of(
            &format!("b{at}"),
            &json!({"policyName": name, "validationActions": ["Deny"]}),
        ));
        for _ in 0..3 {
            let texts: Vec<_> = forms
                .iter()
                .map(|form| almost_valid_text::near(random, form))
                .collect();
            requests.push(json!({"operation": "CREATE",
                "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
                "resource": {"group": "example.com", "version": "v1", "resource": resource},
                "namespace": "n", "name": "w", "user": {"name": "ann"},
                "object": {"apiVersion": "example.com/v1", "kind": "Widget",
                    "metadata": {"name": "w", "namespace": "n"}, "texts": texts}}));
        }
    }
    json!({"policies": policies, "bindings": bindings, "requests": requests,
        "namespaces": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}]})
}

/// The expression with a text of the object in each of its slots; adds the form of each slot to
/// `forms`.
fn placed(function: &'static str, forms: &mut Vec<&'static str>) -> String {
    let mut placed = String::new();
    let mut rest = function;
    while let Some((before, after)) = rest.split_once('{') {
        let (form, behind) = after.split_once('}').unwrap_or((after, ""));
        placed.push_str(before);
        let _ = write!(placed, "object.texts[{}]", forms.len());
        forms.push(form);
        rest = behind;
    }
    placed + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_in_use_exists() {
        let known: Vec<_> = almost_valid_text::forms().collect();
        let mut forms = Vec::new();
        for function in TESTS.iter().chain(FUNCTIONS) {
            placed(function, &mut forms);
        }
        forms.extend(FORMATS.iter().map(|(_, form)| *form));
        for form in forms {
            assert!(known.contains(&form), "{form}");
        }
    }

    #[test]
    fn the_slots_of_a_function_are_texts_of_the_object() {
        let mut forms = vec!["url"];
        let expression = placed("cidr({cidr}).containsIP({ip})", &mut forms);
        assert_eq!(
            expression,
            "cidr(object.texts[1]).containsIP(object.texts[2])"
        );
        assert_eq!(forms, ["url", "cidr", "ip"]);
    }
}
