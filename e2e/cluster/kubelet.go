package main

import (
	"context"
	_ "embed"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// machineOf is an annotation of a Node with the namespace and name of its Machine.
	machineOf = "sim.5spot.finos.org/machine"
	// notReady is the taint that the API server adds to every new Node.
	notReady = "node.kubernetes.io/not-ready"
)

// longestLabel is the maximum number of bytes of a label value. A Node's name may be longer.
const longestLabel = 63

// hostname returns a host's name as a label value.
func hostname(name string) string {
	if len(name) <= longestLabel {
		return name
	}
	return strings.TrimRight(name[:longestLabel], "-.")
}

// join creates the Node of a provisioned host.
func (s *standIns) join(ctx context.Context, machine *unstructured.Unstructured) error {
	provider := text(machine, "spec", "providerID")
	provisioned := isTrue(machine, "status", "initialization", "infrastructureProvisioned") ||
		isTrue(machine, "status", "infrastructureReady")
	// The name contains the namespace, because Nodes are cluster-scoped and names must not collide.
	name := machine.GetName() + "." + machine.GetNamespace()
	if isDeleting(machine) || provider == "" || !provisioned || s.seen(nodes, "", name) != nil {
		return nil
	}
	cluster := s.seen(s.clusters, machine.GetNamespace(), text(machine, "spec", "clusterName"))
	if cluster == nil || text(cluster, "spec", "controlPlaneRef", "kind") != controlPlaneKind {
		return nil
	}
	spec := object{}
	annotations := object{machineOf: machine.GetNamespace() + "/" + machine.GetName()}
	if s.besideReal {
		spec["providerID"] = provider
		// Until a Machine has its nodeRef, Cluster API maps an event of a Node to the only Machine with
		// its providerID, and ignores it if Machines of several namespaces have it.
		annotations[clusterName] = cluster.GetName()
		annotations[clusterGroup+"/cluster-namespace"] = cluster.GetNamespace()
	}
	return s.create(ctx, nodes, object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{
			"name": name,
			"labels": object{
				"kubernetes.io/hostname": hostname(name), "kubernetes.io/os": "linux",
				viewedFrom: machine.GetNamespace(),
			},
			"annotations": annotations,
		},
		"spec": spec,
	})
}

// identify writes the providerID to the Node of a host. Like k0smotron, it authenticates to the
// workload cluster only with a client certificate: with a token, its requests would be anonymous.
func (s *standIns) identify(ctx context.Context, node *unstructured.Unstructured) error {
	namespace, name, _ := strings.Cut(annotation(node, machineOf), "/")
	if name == "" || isDeleting(node) || text(node, "spec", "providerID") != "" {
		return nil
	}
	machine := s.seen(s.machines, namespace, name)
	if machine == nil {
		return nil
	}
	kubeconfig := s.seen(secrets, namespace, text(machine, "spec", "clusterName")+"-kubeconfig")
	if kubeconfig == nil {
		return nil
	}
	given, err := base64.StdEncoding.DecodeString(text(kubeconfig, "data", "value"))
	if err != nil || !strings.Contains(string(given), "client-certificate-data") {
		return err
	}
	return s.patch(ctx, nodes, node, object{"spec": object{"providerID": text(machine, "spec", "providerID")}})
}

// admit acts as the node lifecycle controller for a Node: it removes the taint when the Node is
// ready.
func (s *standIns) admit(ctx context.Context, node *unstructured.Unstructured) error {
	if annotation(node, machineOf) == "" || isDeleting(node) || !holds(node, "Ready") {
		return nil
	}
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	left := slices.DeleteFunc(slices.Clone(taints), func(taint any) bool {
		fields, is := taint.(object)
		return is && fields["key"] == notReady
	})
	if len(left) == len(taints) {
		return nil
	}
	return s.patch(ctx, nodes, node, object{"spec": object{"taints": left}})
}

// stages are the actions of kwok.
//
//go:embed stages.yaml
var stages []byte

// startKubelets starts kwok, which acts as the kubelet of every Node that joins.
func startKubelets(ctx context.Context, family *family, workload *kubernetes, program string) error {
	path := filepath.Join(workload.state, "stages.yaml")
	if err := os.WriteFile(path, stages, 0o600); err != nil {
		return err
	}
	kubeconfig, err := workload.kubeconfig("kwok", "system:masters")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	address := "127.0.0.1:" + port(ports[0])
	kwok, err := family.start("kwok", program, nil,
		"--kubeconfig="+kubeconfig,
		"--config="+path,
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector="+machineOf,
		"--node-ip=127.0.0.1",
		// Without Leases, kwok manages a Node from the first moment.
		"--node-lease-duration-seconds=0",
		"--server-address="+address,
	)
	if err != nil {
		return err
	}
	return kwok.ready(ctx, "http://"+address+"/readyz")
}
