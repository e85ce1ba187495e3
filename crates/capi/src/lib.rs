//! How to read and write Cluster API objects, per contract version.
