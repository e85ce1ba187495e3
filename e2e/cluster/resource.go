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
	secrets         = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	definitions     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// contract is the version of the contract between Cluster API and its providers.
type contract string

const (
	older contract = "v1beta1"
	newer contract = "v1beta2"
)

// resources of Cluster API and its providers, in the version of a contract.
type resources struct {
	clusters, machines, bootstraps, infrastructures, controlPlanes schema.GroupVersionResource
}

func (c contract) resources() resources {
	of := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: string(c), Resource: resource}
	}
	return resources{
		clusters:        of(clusterGroup, "clusters"),
		machines:        of(clusterGroup, "machines"),
		bootstraps:      of(bootstrapGroup, "k0sworkerconfigs"),
		infrastructures: of(infrastructureGroup, "remotemachines"),
		controlPlanes:   of(controlPlaneGroup, "k0smotroncontrolplanes"),
	}
}

// reference returns a reference to an object of the same namespace, in the format of a contract.
func (c contract) reference(group, kind, namespace, name string) object {
	if c == older {
		return object{"apiVersion": group + "/" + string(c), "kind": kind, "namespace": namespace, "name": name}
	}
	return object{"apiGroup": group, "kind": kind, "name": name}
}

// object is an abbreviation.
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

// holds reports whether a condition is True.
func holds(of *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(of.Object, "status", "conditions")
	for _, each := range conditions {
		if each, is := each.(object); is && each["type"] == condition {
			return each["status"] == "True"
		}
	}
	return false
}

// owner returns an owner reference to of. If controls, it is a controller reference.
func owner(of *unstructured.Unstructured, controls bool) []any {
	return []any{object{
		"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "name": of.GetName(),
		"uid": string(of.GetUID()), "controller": controls,
	}}
}

// controllingMachine returns the name of the Machine that controls an object, or an empty name.
func controllingMachine(of *unstructured.Unstructured) string {
	if by := metav1.GetControllerOf(of); by != nil && by.Kind == "Machine" {
		return by.Name
	}
	return ""
}
