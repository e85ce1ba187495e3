package main

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// machineOf, on a Node, is namespace and name of the Machine whose host it is.
	machineOf = "sim.5spot.finos.org/machine"
	// notReady is what the API server puts on every Node that is created.
	notReady = "node.kubernetes.io/not-ready"
)

// longestLabel is how many bytes the value of a label may have; a Node's name may have more.
const longestLabel = 63

// hostname is a host's name as a label bears it.
func hostname(name string) string {
	if len(name) <= longestLabel {
		return name
	}
	return strings.TrimRight(name[:longestLabel], "-.")
}

// join registers the Node of a host that is provisioned.
func (s *standIns) join(ctx context.Context, machine *unstructured.Unstructured) error {
	provider := text(machine, "spec", "providerID")
	provisioned := isTrue(machine, "status", "initialization", "infrastructureProvisioned") ||
		isTrue(machine, "status", "infrastructureReady")
	// Named like a host in its domain: Nodes have no namespace, and those of two must not meet.
	name := machine.GetName() + "." + machine.GetNamespace()
	if isDeleting(machine) || provider == "" || !provisioned || s.seen(nodes, "", name) != nil {
		return nil
	}
	return s.create(ctx, nodes, object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{
			"name":        name,
			"labels":      object{"kubernetes.io/hostname": hostname(name), "kubernetes.io/os": "linux"},
			"annotations": object{machineOf: machine.GetNamespace() + "/" + machine.GetName()},
		},
		"spec": object{"providerID": provider},
	})
}

// becomeReady does the kubelet's part for a Node, and the node lifecycle controller's: the
// taint goes when the Node is ready. A Node that was ready once is left alone: whoever
// made it unready wants it so.
func (s *standIns) becomeReady(ctx context.Context, node *unstructured.Unstructured) error {
	if annotation(node, machineOf) == "" || isDeleting(node) {
		return nil
	}
	if text(node, "status", "nodeInfo", "machineID") == "" {
		now := time.Now().UTC().Format(time.RFC3339)
		condition := func(kind, status, reason string) object {
			return object{
				"type": kind, "status": status, "reason": reason, "message": "",
				"lastHeartbeatTime": now, "lastTransitionTime": now,
			}
		}
		return s.patch(ctx, nodes, node, object{"status": object{
			"conditions": []any{
				condition("Ready", "True", "KubeletReady"),
				condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
				condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
				condition("PIDPressure", "False", "KubeletHasSufficientPID"),
			},
			"nodeInfo": object{
				"machineID": string(node.GetUID()), "systemUUID": string(node.GetUID()), "bootID": string(node.GetUID()),
				"kernelVersion": "0", "osImage": "stand-in", "containerRuntimeVersion": "none://0",
				"kubeletVersion": "v1.36.0", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
			},
		}}, "status")
	}
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	left := slices.DeleteFunc(slices.Clone(taints), func(taint any) bool {
		fields, is := taint.(object)
		return is && fields["key"] == notReady
	})
	if len(left) == len(taints) || !holds(node, "Ready") {
		return nil
	}
	return s.patch(ctx, nodes, node, object{"spec": object{"taints": left}})
}

// runPod starts a pod that is bound to a ready Node, and ends it when it was told to.
func (s *standIns) runPod(ctx context.Context, pod *unstructured.Unstructured) error {
	node := s.seen(nodes, "", text(pod, "spec", "nodeName"))
	if node == nil || annotation(node, machineOf) == "" {
		return nil
	}
	if isDeleting(pod) {
		now, uid := int64(0), pod.GetUID()
		err := s.client.Resource(pods).Namespace(pod.GetNamespace()).Delete(ctx, pod.GetName(), metav1.DeleteOptions{
			GracePeriodSeconds: &now,
			Preconditions:      &metav1.Preconditions{UID: &uid},
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	}
	if text(pod, "status", "phase") != "Pending" || !holds(node, "Ready") {
		return nil
	}
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) object {
		return object{"type": kind, "status": "True", "lastTransitionTime": now}
	}
	return s.patch(ctx, pods, pod, object{"status": object{
		"phase": "Running", "startTime": now,
		"conditions": []any{condition("Initialized"), condition("ContainersReady"), condition("Ready"), condition("PodScheduled")},
	}}, "status")
}
