package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	bootstrapGroup      = "bootstrap.cluster.x-k8s.io"
	infrastructureGroup = "infrastructure.cluster.x-k8s.io"
	controlPlaneGroup   = "controlplane.cluster.x-k8s.io"
	clusterGroup        = "cluster.x-k8s.io"
)

var (
	nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	secrets         = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	definitions     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	clusters        = schema.GroupVersionResource{Group: clusterGroup, Version: "v1beta2", Resource: "clusters"}
	machines        = schema.GroupVersionResource{Group: clusterGroup, Version: "v1beta2", Resource: "machines"}
	bootstraps      = schema.GroupVersionResource{Group: bootstrapGroup, Version: "v1beta2", Resource: "k0sworkerconfigs"}
	infrastructures = schema.GroupVersionResource{Group: infrastructureGroup, Version: "v1beta2", Resource: "remotemachines"}
	controlPlanes   = schema.GroupVersionResource{Group: controlPlaneGroup, Version: "v1beta2", Resource: "k0smotroncontrolplanes"}
)

// object is short for what is written so often here.
type object = map[string]any

func text(of *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(of.Object, path...)
	return value
}

func isTrue(of *unstructured.Unstructured, path ...string) bool {
	value, _, _ := unstructured.NestedBool(of.Object, path...)
	return value
}

func isDeleting(of *unstructured.Unstructured) bool { return of.GetDeletionTimestamp() != nil }

func annotation(of *unstructured.Unstructured, key string) string { return of.GetAnnotations()[key] }

// holds says whether a condition is True.
func holds(of *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(of.Object, "status", "conditions")
	for _, each := range conditions {
		if each, is := each.(object); is && each["type"] == condition {
			return each["status"] == "True"
		}
	}
	return false
}

// owner is a reference by which of owns another object and, if controls, controls it.
func owner(of *unstructured.Unstructured, controls bool) []any {
	return []any{object{
		"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "name": of.GetName(),
		"uid": string(of.GetUID()), "controller": controls,
	}}
}

// controllingMachine names the Machine that controls an object, or is empty.
func controllingMachine(of *unstructured.Unstructured) string {
	if by := metav1.GetControllerOf(of); by != nil && by.Kind == "Machine" {
		return by.Name
	}
	return ""
}
