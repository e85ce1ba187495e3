//! Levels, versions, and the labels of namespaces.

use kubemu_admission::FieldError;
use serde_json::Value;

use crate::admission_configuration::Fields;

/// The prefix of the namespace labels.
pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    const ALL: [Self; 3] = [Self::Privileged, Self::Baseline, Self::Restricted];

    fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }

    fn parse(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == word);
        found.ok_or_else(|| "must be one of privileged, baseline, restricted".to_owned())
    }
}

/// A level for a minor release; `None` means the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standard {
    pub(super) level: Level,
    pub(super) minor: Option<u32>,
}

impl Standard {
    pub(super) fn to_text(self) -> String {
        let level = self.level.as_str();
        match self.minor {
            Some(minor) => format!("{level}:v1.{minor}"),
            None => format!("{level}:latest"),
        }
    }
}

fn parse_version(word: &str) -> Result<Option<u32>, String> {
    if word == "latest" {
        return Ok(None);
    }
    let digits = word.strip_prefix("v1.").unwrap_or_default();
    let is_plain = digits == "0" || !digits.starts_with('0');
    let number = digits
        .parse()
        .ok()
        .filter(|_| is_plain && digits.bytes().all(|it| it.is_ascii_digit()));
    number
        .map(Some)
        .ok_or_else(|| "must be \"latest\" or \"v1.x\"".to_owned())
}

/// The policy of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: Standard,
    pub(super) audit: Standard,
    pub(super) warn: Standard,
}

impl Policy {
    /// The policy of a namespace by its labels, and the errors of the labels.
    pub(super) fn of(labels: &Value, defaults: Self) -> (Self, Vec<FieldError>) {
        let mut policy = defaults;
        let mut errors = Vec::new();
        let label = |mode: &str| labels[format!("{PREFIX}{mode}")].as_str();
        let mut level = |mode: &str, failing: Level, into: &mut Level| {
            let Some(value) = label(mode) else {
                return false;
            };
            let parsed = Level::parse(value);
            *into = *parsed.as_ref().unwrap_or(&failing);
            let is_sound = parsed.is_ok();
            errors.extend(parsed.err().map(|why| wrong(mode, value, why)));
            is_sound
        };
        let enforced = level("enforce", Level::Restricted, &mut policy.enforce.level);
        level("audit", Level::Privileged, &mut policy.audit.level);
        level("warn", Level::Privileged, &mut policy.warn.level);
        let mut version = |mode: &str, into: &mut Option<u32>| {
            if let Some(value) = label(mode) {
                let parsed = parse_version(value);
                *into = *parsed.as_ref().unwrap_or(&None);
                errors.extend(parsed.err().map(|why| wrong(mode, value, why)));
            }
        };
        version("enforce-version", &mut policy.enforce.minor);
        version("audit-version", &mut policy.audit.minor);
        version("warn-version", &mut policy.warn.minor);
        // If the enforced level is higher than the default warning level, warnings use the enforced
        // level.
        if label("warn").is_none() && enforced && policy.enforce.level > policy.warn.level
        {
            policy.warn.level = policy.enforce.level;
            if label("warn-version").is_none() {
                policy.warn.minor = policy.enforce.minor;
            }
        }
        (policy, errors)
    }

    /// The default policy of the configuration, for namespaces without labels.
    ///
    /// # Errors
    /// The error of the configuration.
    pub(super) fn configured(fields: &Fields<'_>) -> Result<Self, String> {
        let modes = ["enforce", "audit", "warn"];
        let versions = modes.map(|it| format!("{it}-version"));
        let known: Vec<&str> = modes
            .into_iter()
            .chain(versions.iter().map(String::as_str))
            .collect();
        fields.only(&known)?;
        let standard = |mode: &str| {
            let wrong =
                |field: &str, why: String| format!("{}.{field}: {why}", fields.path());
            let (level, version) = (fields.text(mode)?, format!("{mode}-version"));
            let value = fields.text(&version)?;
            let level = if level.is_empty() {
                Ok(Level::default())
            } else {
                Level::parse(&level)
            };
            let minor = if value.is_empty() {
                Ok(None)
            } else {
                parse_version(&value)
            };
            Ok::<_, String>(Standard {
                level: level.map_err(|why| wrong(mode, why))?,
                minor: minor.map_err(|why| wrong(&version, why))?,
            })
        };
        Ok(Self {
            enforce: standard("enforce")?,
            audit: standard("audit")?,
            warn: standard("warn")?,
        })
    }
}

fn wrong(mode: &str, value: &str, why: String) -> FieldError {
    let path = format!("metadata.labels[{PREFIX}{mode}]");
    FieldError::invalid(path, value.into(), why)
}
