module fivespot.finos.org/e2e/target-crds

go 1.26.0

// Only their CRDs are read.
require (
	github.com/kedacore/keda/v2 v2.21.0
	sigs.k8s.io/cluster-api v1.14.2
	sigs.k8s.io/karpenter v1.14.0
	sigs.k8s.io/kueue v0.17.0
)
