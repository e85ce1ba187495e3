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

// providerDefinitions of the kinds that the stand-ins serve.
//
//go:embed provider.yaml
var providerDefinitions string

// startClusterAPI defines Cluster API's kinds, starts the core manager and returns when it is
// ready, with the newest contract that it speaks.
//
// Objects are converted between the contracts by the core manager's webhook, as in production. Where
// there are objects already, isUpgrade, the manager migrates what is stored.
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

// defineStandIns defines the kinds that the stand-ins serve; beside real providers that is the
// control plane alone.
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

// readDefinitions reads the definitions beside a manager, with the conversion webhook that the
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

// conversion is how the API server reaches the core manager's webhook. Nothing resolves the
// name of a Service here, so that the address takes its place.
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

// convertedKinds names the definitions that Cluster API's release gives a conversion webhook.
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

// versions of a kind, as its definition lists them.
func versions(definition *unstructured.Unstructured) []any {
	all, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return all
}

// serves says whether a definition has a version that is served.
func serves(definition *unstructured.Unstructured, version contract) bool {
	return slices.ContainsFunc(versions(definition), func(each any) bool {
		fields, _ := each.(object)
		return fields["name"] == string(version) && fields["served"] == true
	})
}

// forget takes a version out of a definition, and stores objects in the one that is left.
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

// define creates or replaces a CustomResourceDefinition and waits until its kind is served.
func define(ctx context.Context, k *kubernetes, definition *unstructured.Unstructured) error {
	name := definition.GetName()
	labels := definition.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	// By these, Cluster API finds the versions of a kind that fit its contracts.
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

// replaceDefinition replaces a CustomResourceDefinition. The server writes to its status meanwhile.
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

// coreManager is the program of Cluster API's core manager, and the name of its child.
const coreManager = "cluster-api-core"

// startCore starts the core manager; of the ports, the first is its webhook server's.
func startCore(ctx context.Context, family *family, k *kubernetes, programs string, contract contract, ports []int, isUpgrade bool) error {
	arguments := []string{
		// Many machines come and go at a time; what limits them is to be this machine.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
	if contract == newer && !isUpgrade {
		arguments = append(arguments, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields")
	}
	return startManager(ctx, family, k, filepath.Join(programs, coreManager), ports, arguments...)
}

// startManager starts a manager of Cluster API's own repository and waits until it is ready; of the
// ports, the first is its webhook server's.
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
