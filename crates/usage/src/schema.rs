//! The JSON Schema of the report.

use fivespot_api::verdict::State;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::Report;

/// The path of the schema, below `docs/reference`.
pub const FILE: &str = "report.schema.json";

/// The JSON Schema (2020-12) of `5spot report -o json`. Cannot fail.
pub fn json() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|it| it.inline_subschemas = true);
    settings
        .into_generator()
        .into_root_schema_for::<Report>()
        .to_value()
}

/// The properties of [`Verdict`](fivespot_api::verdict::Verdict).
pub(crate) fn verdict(_: &mut SchemaGenerator) -> Schema {
    let text =
        |description: &str| json_schema!({"type": "string", "description": description});
    json_schema!({
        "type": "object",
        "additionalProperties": false,
        "required": ["state", "cause", "actor", "isStale"],
        "properties": {
            "state": {
                "type": "string",
                "enum": State::ALL.map(State::as_str),
                "description": "The state.",
            },
            "since": {
                "type": "string",
                "format": "date-time",
                "description": "Since when, as far as the status says.",
            },
            "reason": text("The reason of the condition that decides; absent if no condition does."),
            "cause": text("The operator's message, or why there is none."),
            "remedy": text("What to do; absent if there is nothing to do."),
            "page": text("The page with more details, below docs/."),
            "actor": text("Who can act."),
            "isStale": {"type": "boolean", "description": "Whether the status may be out of date."},
        },
    })
}
