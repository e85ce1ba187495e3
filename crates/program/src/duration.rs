//! Durations as users write them in flags.

use fivespot_schedule::Duration;

/// Parses a duration: digits and one of s, m, h.
///
/// # Errors
/// The text is anything else. Of days, the message has their hours.
pub fn duration(text: &str) -> Result<Duration, String> {
    text.parse().map_err(|_| {
        let days = text
            .strip_suffix('d')
            .and_then(|days| days.parse::<u16>().ok());
        let hint = days.map_or_else(String::new, |days| {
            format!(": {days} days are {}h", u32::from(days) * 24)
        });
        format!("must be digits and one of s, m, h, such as 90m or 2h{hint}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_digits_and_one_unit() {
        assert_eq!(duration("90m"), Ok(Duration::minutes(90)));
        for (text, hint) in [("5", ""), ("", ""), ("2d", ": 2 days are 48h")] {
            let wanted =
                format!("must be digits and one of s, m, h, such as 90m or 2h{hint}");
            assert_eq!(duration(text), Err(wanted), "{text}");
        }
    }
}
