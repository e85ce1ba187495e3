//! When is a machine wanted: days, hours and cron in a time zone, and the next change after any instant.
