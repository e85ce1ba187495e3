package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// conformance is the namespace of the Cluster for manual tests of providers.
const conformance = "conformance"

// addCluster creates the objects of a file in the namespace conformance. It returns when the
// control plane of the Cluster among them is available.
func addCluster(ctx context.Context, k *kubernetes, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	namespace := object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": conformance}}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := k.client.Resource(namespaces).Create(ctx, &unstructured.Unstructured{Object: namespace}, metav1.CreateOptions{}); err != nil {
		return err
	}
	var up func() bool
	for _, document := range strings.Split(string(content), "\n---\n") {
		made, err := parse(document)
		if err != nil {
			return err
		}
		kind := made.GroupVersionKind()
		resource := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
		in := k.client.Resource(resource).Namespace(conformance)
		if _, err := in.Create(ctx, made, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, made.GetName(), err)
		}
		if kind.Group == clusterGroup && kind.Kind == "Cluster" {
			up = func() bool {
				cluster, err := in.Get(ctx, made.GetName(), metav1.GetOptions{})
				return err == nil && holds(cluster, "ControlPlaneInitialized") && holds(cluster, "ControlPlaneAvailable")
			}
		}
	}
	if up == nil {
		return fmt.Errorf("%s: there is no Cluster", path)
	}
	return until(ctx, "the control plane of the Cluster in "+path, nil, up)
}
