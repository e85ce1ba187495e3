//! Lengths of time as people read them at a glance.

use jiff::SignedDuration;

/// `3h 20m`, `2d`, `45s`: a length in its two largest units, whatever its sign. The rest is cut off.
pub fn length(of: SignedDuration) -> String {
    let seconds = of.as_secs().unsigned_abs();
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let shown = parts.iter().skip_while(|(number, _)| *number == 0).take(2);
    let shown = shown.filter(|(number, _)| *number > 0);
    let shown: Vec<String> = shown
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    if shown.is_empty() {
        "0s".to_owned()
    } else {
        shown.join(" ")
    }
}

/// `in 3h 20m`, `2d ago`: how far an instant is from now, if it is later by `of`.
pub fn distance(of: SignedDuration) -> String {
    if of.is_positive() {
        format!("in {}", length(of))
    } else {
        format!("{} ago", length(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_its_two_largest_units_and_nothing_that_is_zero() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (125, "2m 5s"),
            (7_200, "2h"),
            (7_259, "2h"),
            (12_000, "3h 20m"),
            (86_459, "1d"),
            (-200_000, "2d 7h"),
        ] {
            assert_eq!(
                length(SignedDuration::from_secs(seconds)),
                text,
                "{seconds}"
            );
        }
    }

    #[test]
    fn an_instant_is_ahead_or_ago_and_now_is_ago() {
        let at = |seconds| distance(SignedDuration::from_secs(seconds));
        assert_eq!([at(1), at(0), at(-1)], ["in 1s", "0s ago", "1s ago"]);
        let soon = SignedDuration::from_millis(400);
        assert_eq!(distance(soon), "in 0s");
    }
}
