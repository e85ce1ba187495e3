package main

import (
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"
)

// providerDefinitions are the CRDs of the kinds that the stand-ins serve.
//
//go:embed provider.yaml
var providerDefinitions string

// startClusterAPI installs Cluster API's CRDs and starts the core manager. It returns when the
// manager is ready, with the newest contract that it supports.
//
// The core manager's webhook converts objects between the contracts, as in production. If objects
// exist already (isUpgrade), the manager migrates the stored ones.
func startClusterAPI(ctx context.Context, family *family, k *kubernetes, programs string, isUpgrade bool) (contract, error) {
	ports, err := freePorts(3)
	if err != nil {
		return "", err
	}
	all, err := k.readDefinitions(programs, ports[0])
	if err != nil {
		return "", err
	}
	contract := older
	for _, definition := range all {
		if definition.GetName() == "machines."+clusterGroup && serves(definition, newer) {
			contract = newer
		}
	}
	for _, definition := range all {
		if err := define(ctx, k, definition); err != nil {
			return "", err
		}
	}
	return contract, startCore(ctx, family, k, programs, contract, ports, isUpgrade)
}

// defineStandIns installs the CRDs of the kinds that the stand-ins serve. With real providers, that
// is only the control plane.
func defineStandIns(ctx context.Context, k *kubernetes, contract contract, besideReal bool) error {
	for _, document := range strings.Split(providerDefinitions, "\n---\n") {
		definition, err := parse(document)
		if err != nil {
			return err
		}
		if group, _, _ := unstructured.NestedString(definition.Object, "spec", "group"); besideReal && group != controlPlaneGroup {
			continue
		}
		if contract == older {
			forget(definition, newer)
		}
		if err := define(ctx, k, definition); err != nil {
			return err
		}
	}
	return nil
}

// readDefinitions reads the CRDs in a manager's folder, with the conversion webhook that the
// manager serves at a port.
func (k *kubernetes) readDefinitions(programs string, at int) ([]*unstructured.Unstructured, error) {
	conversion, err := k.conversion(at)
	if err != nil {
		return nil, err
	}
	converted, err := convertedKinds(programs)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(programs, "crds", "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no definitions in %s", filepath.Join(programs, "crds"))
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		definition, err := parse(string(content))
		if err != nil {
			return nil, err
		}
		if slices.Contains(converted, definition.GetName()) {
			if err := unstructured.SetNestedMap(definition.Object, conversion, "spec", "conversion"); err != nil {
				return nil, err
			}
		}
		all = append(all, definition)
	}
	return all, nil
}

// conversion is the API server's configuration of the core manager's conversion webhook. It has a
// URL, because the name of a Service cannot be resolved here.
func (k *kubernetes) conversion(at int) (object, error) {
	authority, err := os.ReadFile(k.authority.path())
	if err != nil {
		return nil, err
	}
	return object{
		"strategy": "Webhook",
		"webhook": object{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig": object{
				"url":      "https://127.0.0.1:" + port(at) + "/convert",
				"caBundle": base64.StdEncoding.EncodeToString(authority),
			},
		},
	}, nil
}

// convertedKinds returns the names of the CRDs for which Cluster API's release configures a
// conversion webhook.
func convertedKinds(programs string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(programs, "conversions", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		patch, err := parse(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		names = append(names, patch.GetName())
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no patches in %s", filepath.Join(programs, "conversions"))
	}
	return names, nil
}

func parse(document string) (*unstructured.Unstructured, error) {
	definition := &unstructured.Unstructured{}
	return definition, yaml.Unmarshal([]byte(document), &definition.Object)
}

// versions returns the versions in a CRD.
func versions(definition *unstructured.Unstructured) []any {
	all, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return all
}

// serves reports whether a CRD has a version that is served.
func serves(definition *unstructured.Unstructured, version contract) bool {
	return slices.ContainsFunc(versions(definition), func(each any) bool {
		fields, _ := each.(object)
		return fields["name"] == string(version) && fields["served"] == true
	})
}

// forget removes a version from a CRD, and makes the remaining one the storage version.
func forget(definition *unstructured.Unstructured, version contract) {
	left := slices.DeleteFunc(versions(definition), func(each any) bool {
		fields, _ := each.(object)
		return fields["name"] == string(version)
	})
	if fields, is := left[0].(object); is {
		fields["storage"] = true
	}
	_ = unstructured.SetNestedSlice(definition.Object, left, "spec", "versions")
}

// define creates or replaces a CRD and waits until its kind is served.
func define(ctx context.Context, k *kubernetes, definition *unstructured.Unstructured) error {
	name := definition.GetName()
	labels := definition.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	// With these labels, Cluster API finds the versions of a kind for each of its contracts.
	for _, contract := range []contract{older, newer} {
		delete(labels, "cluster.x-k8s.io/"+string(contract))
		if serves(definition, contract) {
			labels["cluster.x-k8s.io/"+string(contract)] = string(contract)
		}
	}
	definition.SetLabels(labels)
	_, err := k.client.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = replaceDefinition(ctx, k, definition)
	}
	if err != nil {
		return fmt.Errorf("defining %s: %w", name, err)
	}
	watch, err := k.client.Resource(definitions).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if seen, is := event.Object.(*unstructured.Unstructured); is && holds(seen, "Established") {
			return nil
		}
	}
	return fmt.Errorf("defining %s: the watch ended before it was established", name)
}

// replaceDefinition replaces a CRD. It retries on conflicts, because the server writes its status
// concurrently.
func replaceDefinition(ctx context.Context, k *kubernetes, definition *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := k.client.Resource(definitions).Get(ctx, definition.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		definition.SetResourceVersion(found.GetResourceVersion())
		_, err = k.client.Resource(definitions).Update(ctx, definition, metav1.UpdateOptions{})
		return err
	})
}

// coreManager is the program of Cluster API's core manager, and the name of its child process.
const coreManager = "cluster-api-core"

// startCore starts the core manager. The first of the ports is for its webhook server.
func startCore(ctx context.Context, family *family, k *kubernetes, programs string, contract contract, ports []int, isUpgrade bool) error {
	arguments := []string{
		// Many machines are created and deleted at a time. Only this computer should limit them.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
	if contract == newer && !isUpgrade {
		arguments = append(arguments, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields")
	}
	return startManager(ctx, family, k, filepath.Join(programs, coreManager), ports, arguments...)
}

// startManager starts a manager of Cluster API's own repository and waits until it is ready. The
// first of the ports is for its webhook server.
func startManager(ctx context.Context, family *family, k *kubernetes, program string, ports []int, more ...string) error {
	webhook := *k.authority
	webhook.directory = filepath.Join(k.state, "webhook")
	if _, err := webhook.serving("tls"); err != nil {
		return err
	}
	kubeconfig, err := k.kubeconfig("capi-manager", "system:masters")
	if err != nil {
		return err
	}
	arguments := append([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--webhook-port=" + port(ports[0]),
		"--webhook-cert-dir=" + webhook.directory,
		"--health-addr=127.0.0.1:" + port(ports[1]),
		"--diagnostics-address=127.0.0.1:" + port(ports[2]),
		"--insecure-diagnostics",
	}, more...)
	environment := []string{"POD_NAMESPACE=capi-system", "POD_IP=127.0.0.1"}
	manager, err := family.start(filepath.Base(program), program, environment, arguments...)
	if err != nil {
		return err
	}
	manager.health = "http://127.0.0.1:" + port(ports[1]) + "/readyz"
	return manager.ready(ctx, manager.health)
}
