//! What the product promises, one file each, driven through the Kubernetes API alone.

mod drains_before_delete;
mod opens_on_time;
mod survives_restart_at_every_write;
