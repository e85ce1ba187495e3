package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	clusterName = "cluster.x-k8s.io/cluster-name"
	// noControlPlane, with the value "never" on a Cluster, keeps its control plane from
	// coming up.
	noControlPlane = "sim.5spot.finos.org/control-plane"
	hostFinalizer  = "remotemachine.k0smotron.io/finalizer"
)

// provideControlPlane gives a Cluster a control plane and the kubeconfig to reach it.
func (s *standIns) provideControlPlane(ctx context.Context, cluster *unstructured.Unstructured) error {
	if isDeleting(cluster) || isTrue(cluster, "spec", "paused") || annotation(cluster, noControlPlane) == "never" {
		return nil
	}
	namespace, name := cluster.GetNamespace(), cluster.GetName()
	if s.seen(s.controlPlanes, namespace, name) == nil {
		if err := s.create(ctx, s.controlPlanes, object{
			"apiVersion": s.controlPlanes.GroupVersion().String(), "kind": "K0smotronControlPlane",
			"metadata": object{"name": name, "namespace": namespace, "labels": object{clusterName: name}},
		}); err != nil {
			return err
		}
		return s.create(ctx, secrets, object{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": object{
				"name": name + "-kubeconfig", "namespace": namespace,
				"labels": object{clusterName: name}, "ownerReferences": owner(cluster, false),
			},
			"type":       "cluster.x-k8s.io/secret",
			"stringData": object{"value": s.workload},
		})
	}
	if text(cluster, "spec", "controlPlaneRef", "name") != "" {
		return nil
	}
	return s.patch(ctx, s.clusters, cluster, object{"spec": object{
		"controlPlaneRef":      s.contract.reference(controlPlaneGroup, "K0smotronControlPlane", namespace, name),
		"controlPlaneEndpoint": object{"host": "127.0.0.1", "port": 6443},
	}})
}

// initialise says what Cluster API wants to hear of a control plane without Machines.
func (s *standIns) initialise(ctx context.Context, controlPlane *unstructured.Unstructured) error {
	if isDeleting(controlPlane) || isTrue(controlPlane, "status", "externalManagedControlPlane") {
		return nil
	}
	return s.patch(ctx, s.controlPlanes, controlPlane, object{"status": object{
		"externalManagedControlPlane": true,
		// By these the older contract knows it, by the third the newer one.
		"ready": true, "initialized": true,
		"initialization": object{"controlPlaneInitialized": true},
	}}, "status")
}

// bootstrap writes the data by which a host joins.
func (s *standIns) bootstrap(ctx context.Context, config *unstructured.Unstructured) error {
	if isDeleting(config) || controllingMachine(config) == "" || isTrue(config, "status", "initialization", "dataSecretCreated") {
		return nil
	}
	name := config.GetName()
	if err := s.create(ctx, secrets, object{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": object{
			"name": name, "namespace": config.GetNamespace(),
			"labels":          object{clusterName: config.GetLabels()[clusterName]},
			"ownerReferences": owner(config, true),
		},
		"type":       "cluster.x-k8s.io/secret",
		"stringData": object{"value": "#cloud-config\n"},
	}); err != nil {
		return err
	}
	return s.patch(ctx, s.bootstraps, config, object{"status": object{
		"dataSecretName": name,
		"ready":          true,
		"initialization": object{"dataSecretCreated": true},
	}}, "status")
}

// provision prepares a host, and resets it in the end. Like k0smotron's RemoteMachine,
// the object does neither without a Machine that has its bootstrap data: without one, it
// stays for ever.
func (s *standIns) provision(ctx context.Context, host *unstructured.Unstructured) error {
	finalizers := host.GetFinalizers()
	marked := slices.Contains(finalizers, hostFinalizer)
	if !marked {
		if isDeleting(host) {
			return nil
		}
		return s.patch(ctx, s.infrastructures, host, object{"metadata": object{"finalizers": append(finalizers, hostFinalizer)}})
	}
	machine := s.seen(s.machines, host.GetNamespace(), controllingMachine(host))
	if machine == nil || text(machine, "spec", "bootstrap", "dataSecretName") == "" {
		return nil
	}
	if isDeleting(host) {
		left := slices.DeleteFunc(slices.Clone(finalizers), func(each string) bool { return each == hostFinalizer })
		return s.patch(ctx, s.infrastructures, host, object{"metadata": object{"finalizers": left}})
	}
	address := text(host, "spec", "address")
	if address == "" {
		address = "127.0.0.1"
	}
	if text(host, "spec", "providerID") == "" {
		// Two namespaces may each have a host of that address.
		id := fmt.Sprintf("remote-machine://%s.%s:22", address, host.GetNamespace())
		return s.patch(ctx, s.infrastructures, host, object{"spec": object{"providerID": id}})
	}
	if isTrue(host, "status", "initialization", "provisioned") {
		return nil
	}
	return s.patch(ctx, s.infrastructures, host, object{"status": object{
		"addresses":      []any{object{"type": "InternalIP", "address": address}},
		"ready":          true,
		"initialization": object{"provisioned": true},
	}}, "status")
}
