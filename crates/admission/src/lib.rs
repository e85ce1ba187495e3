//! What a Kubernetes API server would answer to an object: structural schemas, CRD validation rules, admission policies.
