//! A place in the patched document.

use serde_json::Value;

use crate::nesting;

/// The size from which on a removed key of an object is replaced by the last one: the order of the
/// keys has no meaning, and keeping it would shift all keys after it.
const LARGE_OBJECT: usize = 256;

/// The location of the last step of a path.
pub(super) struct Location<'v> {
    /// The containing object or list.
    pub(super) container: &'v mut Value,
    pub(super) key: String,
    /// The number of steps of the path.
    pub(super) depth: usize,
    /// The number of values that were shifted or moved.
    pub(super) shifted: &'v mut usize,
}

impl Location<'_> {
    /// The value at this location. A missing key of an object counts as null.
    pub(super) fn current(&self) -> Result<&Value, String> {
        match &*self.container {
            Value::Array(items) => {
                let at = index(&self.key, items.len())?;
                items.get(at).ok_or_else(|| out_of_range(at))
            }
            other => Ok(&other[&self.key]),
        }
    }

    /// Adds a value at this location; in a list it is inserted before the current entry.
    pub(super) fn put(self, value: Value) -> Result<(), String> {
        // Checked for each operation, because repeated moves of a value into itself would nest
        // it without limit.
        self.check_depth(&value)?;
        match self.container {
            Value::Array(items) => {
                let (end, key) = (items.len(), &self.key);
                let at = if key == "-" {
                    end
                } else {
                    index(key, end + 1).map_err(|why| {
                        let is_number = key.parse::<i64>().is_ok();
                        if is_number {
                            return why;
                        }
                        format!("value was not a proper array index: '{key}': {why}")
                    })?
                };
                if at > end {
                    return Err(out_of_range(at));
                }
                *self.shifted += end - at;
                items.insert(at, value);
            }
            container => container[&self.key] = value,
        }
        Ok(())
    }

    /// Replaces the value at this location.
    pub(super) fn set(self, value: Value) -> Result<(), String> {
        self.check_depth(&value)?;
        match self.container {
            Value::Array(items) => {
                let at = index(&self.key, items.len())?;
                let item = items.get_mut(at).ok_or_else(|| out_of_range(at))?;
                *item = value;
            }
            container => container[&self.key] = value,
        }
        Ok(())
    }

    pub(super) fn take(self) -> Result<Value, String> {
        let key = &self.key;
        match self.container {
            Value::Array(items) => {
                let at = index(key, items.len())?;
                if at >= items.len() {
                    return Err(out_of_range(at));
                }
                *self.shifted += items.len() - at;
                Ok(items.remove(at))
            }
            container => {
                let fields = container.as_object_mut();
                let removed = fields.and_then(|it| {
                    if it.len() < LARGE_OBJECT {
                        it.shift_remove(key)
                    } else {
                        it.swap_remove(key)
                    }
                });
                removed.ok_or_else(|| {
                    format!("Unable to remove nonexistent key: {key}: missing value")
                })
            }
        }
    }

    fn check_depth(&self, value: &Value) -> Result<(), String> {
        if self.depth + nesting::depth(value) > nesting::MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        Ok(())
    }
}

/// The list index of a step; a negative one counts from the end. It may be beyond the end.
pub(super) fn index(step: &str, len: usize) -> Result<usize, String> {
    let number: i64 = step
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {step:?}: invalid syntax"))?;
    let invalid =
        || format!("Unable to access invalid index: {number}: invalid index referenced");
    let counted = usize::try_from(number.unsigned_abs()).map_err(|_| invalid())?;
    if number < 0 {
        len.checked_sub(counted).ok_or_else(invalid)
    } else {
        Ok(counted)
    }
}

fn out_of_range(index: usize) -> String {
    format!("Unable to access invalid index: {index}: invalid index referenced")
}
