//! What to do next about one ScheduledMachine: pure, total, no clock and no client.
