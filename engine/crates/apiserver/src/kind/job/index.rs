//! Strings of indexes, such as `0-3,7`.

/// The number of indexes in a string; each must be less than `completions`.
///
/// # Errors
/// The parse error, with Kubernetes' message.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut last: Option<i64> = None;
    let mut total = 0;
    for interval in text.split(',') {
        let (first, end) = parse(interval, completions)?;
        if let Some(last) = last.filter(|it| *it >= first) {
            return Err(order(last, first));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn order(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

fn parse(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| {
        let number: i32 = text.parse().map_err(|_| {
            format!("cannot convert string to integer for index: {text:?}")
        })?;
        if i64::from(number) >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(i64::from(number))
    };
    let parts: Vec<&str> = interval.split('-').collect();
    match parts.as_slice() {
        [one] => index(one).map(|it| (it, it)),
        [first, end] => {
            let (first, end) = (index(first)?, index(end)?);
            if first >= end {
                return Err(order(first, end));
            }
            Ok((first, end))
        }
        _ => Err(format!(
            "the fragment {interval:?} violates the requirement that an index interval can \
             have at most two parts separated by '-'"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_increase_and_are_less_than_completions() {
        assert_eq!(count("", 3), Ok(0));
        assert_eq!(count("0-2,4", 5), Ok(4));
        let wrong = |text: &str| count(text, 5).unwrap_err();
        assert_eq!(wrong("5"), "too large index: \"5\"");
        assert_eq!(wrong("3-1"), order(3, 1));
        assert_eq!(wrong("1,0"), order(1, 0));
        assert!(wrong("a").starts_with("cannot convert"));
        assert!(wrong("1-2-3").starts_with("the fragment"));
    }
}
