package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	clusterName = "cluster.x-k8s.io/cluster-name"
	// noControlPlane is an annotation of a Cluster. With the value "never", its control plane does not
	// become available.
	noControlPlane = "sim.5spot.finos.org/control-plane"
	hostFinalizer  = "remotemachine.k0smotron.io/finalizer"
	// hostIs is an annotation of a host. With the value "unreachable", the host does not respond.
	hostIs = "sim.5spot.finos.org/host"
	// controlPlaneKind is the kind of control plane that the stand-ins serve.
	controlPlaneKind = "K0smotronControlPlane"
)

// provideControlPlane gives a Cluster without a control plane reference a control plane, and the
// Secrets with which providers access it and join hosts.
func (s *standIns) provideControlPlane(ctx context.Context, cluster *unstructured.Unstructured) error {
	if isDeleting(cluster) || isTrue(cluster, "spec", "paused") || annotation(cluster, noControlPlane) == "never" {
		return nil
	}
	if text(cluster, "spec", "controlPlaneRef", "name") != "" {
		return nil
	}
	namespace, name := cluster.GetNamespace(), cluster.GetName()
	kubeconfig, err := s.views.kubeconfig(namespace, s.besideReal)
	if err != nil {
		return err
	}
	spec := object{
		"controlPlaneRef":      s.contract.reference(controlPlaneGroup, controlPlaneKind, namespace, name),
		"controlPlaneEndpoint": object{"host": "127.0.0.1", "port": 6443},
	}
	made := []object{secretOf(cluster, "kubeconfig", object{"value": kubeconfig})}
	if s.besideReal {
		certificate, key, err := s.views.authority()
		if err != nil {
			return err
		}
		made = append(made, secretOf(cluster, "ca", object{"tls.crt": certificate, "tls.key": key}), devCluster(namespace, name))
		// The provider sets the endpoint.
		delete(spec, "controlPlaneEndpoint")
		spec["infrastructureRef"] = s.contract.reference(infrastructureGroup, "DevCluster", namespace, name)
	}
	made = append(made, object{
		"apiVersion": s.controlPlanes.GroupVersion().String(), "kind": controlPlaneKind,
		"metadata": object{"name": name, "namespace": namespace, "labels": object{clusterName: name}},
	})
	for _, each := range made {
		if err := s.create(ctx, s.resourceOf(each), each); err != nil {
			return err
		}
	}
	return s.patch(ctx, s.clusters, cluster, object{"spec": spec})
}

// secretOf returns a Secret of a Cluster in Cluster API's format. It is deleted with the Cluster.
func secretOf(cluster *unstructured.Unstructured, purpose string, values object) object {
	name := cluster.GetName()
	return object{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": object{
			"name": name + "-" + purpose, "namespace": cluster.GetNamespace(),
			"labels": object{clusterName: name}, "ownerReferences": owner(cluster, false),
		},
		"type":       "cluster.x-k8s.io/secret",
		"stringData": values,
	}
}

// devCluster returns the infrastructure of a Cluster with in-memory hosts.
func devCluster(namespace, name string) object {
	return object{
		"apiVersion": infrastructureGroup + "/" + string(newer), "kind": "DevCluster",
		"metadata": object{
			"name": name, "namespace": namespace, "labels": object{clusterName: name},
			// The provider of Cluster API 1.14 fails if there are no annotations.
			"annotations": object{"sim.5spot.finos.org/made-by": "stand-in"},
		},
		"spec": object{"backend": object{"inMemory": object{}}},
	}
}

// resourceOf returns the resource of an object that provideControlPlane creates.
func (s *standIns) resourceOf(of object) schema.GroupVersionResource {
	switch of["kind"] {
	case "Secret":
		return secrets
	case "DevCluster":
		return schema.GroupVersionResource{Group: infrastructureGroup, Version: string(newer), Resource: "devclusters"}
	default:
		return s.controlPlanes
	}
}

// initialise sets the status that Cluster API expects of a control plane without Machines.
func (s *standIns) initialise(ctx context.Context, controlPlane *unstructured.Unstructured) error {
	if isDeleting(controlPlane) || isTrue(controlPlane, "status", "externalManagedControlPlane") {
		return nil
	}
	return s.patch(ctx, s.controlPlanes, controlPlane, object{"status": object{
		"externalManagedControlPlane": true,
		// The first two are for the older contract, the third for the newer one.
		"ready": true, "initialized": true,
		"initialization": object{"controlPlaneInitialized": true},
	}}, "status")
}

// bootstrap writes the data with which a host joins.
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

// provision prepares a host, and resets it when it is deleted, as k0smotron's RemoteMachine does.
// It does neither without a Machine that has its bootstrap data: without one, the object stays
// forever. Failures are only reported in its status.
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
	// The key is read first, also before the clean-up.
	if key := text(host, "spec", "sshKeyRef", "name"); key != "" && s.seen(secrets, host.GetNamespace(), key) == nil {
		return s.reportFailure(ctx, host, fmt.Sprintf("secrets %q not found", key))
	}
	if isDeleting(host) {
		// A host that does not respond is tried once, and released.
		left := slices.DeleteFunc(slices.Clone(finalizers), func(each string) bool { return each == hostFinalizer })
		return s.patch(ctx, s.infrastructures, host, object{"metadata": object{"finalizers": left}})
	}
	if isTrue(host, "status", "initialization", "provisioned") {
		return nil
	}
	address := text(host, "spec", "address")
	if address == "" {
		address = "127.0.0.1"
	}
	if annotation(host, hostIs) == "unreachable" {
		return s.reportFailure(ctx, host, fmt.Sprintf("ssh dial: dial tcp %s:22: connect: connection refused", address))
	}
	if text(host, "spec", "providerID") == "" {
		// Two namespaces may each have a host with this address.
		id := fmt.Sprintf("remote-machine://%s.%s:22", address, host.GetNamespace())
		return s.patch(ctx, s.infrastructures, host, object{"spec": object{"providerID": id}})
	}
	status := s.failure(nil, nil)
	status["addresses"] = []any{object{"type": "InternalIP", "address": address}}
	status["ready"] = true
	status["initialization"] = object{"provisioned": true}
	return s.patch(ctx, s.infrastructures, host, object{"status": status}, "status")
}

// reportFailure writes a failure to the status of a host, in the fields of the contract.
func (s *standIns) reportFailure(ctx context.Context, host *unstructured.Unstructured, message string) error {
	at := []string{"status", "failureMessage"}
	if s.contract == newer {
		at = []string{"status", "deprecated", "v1beta1", "failureMessage"}
	}
	if text(host, at...) == message {
		return nil
	}
	return s.patch(ctx, s.infrastructures, host, object{"status": s.failure("ProvisionFailed", message)}, "status")
}

// failure returns a status with a failure. With nil, the failure is removed.
func (s *standIns) failure(reason, message any) object {
	failure := object{"failureReason": reason, "failureMessage": message}
	if s.contract == newer {
		return object{"deprecated": object{"v1beta1": failure}}
	}
	return failure
}
