package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// providerDefinitions of the kinds that the stand-ins serve.
//
//go:embed provider.yaml
var providerDefinitions string

// startClusterAPI defines Cluster API's kinds and those of the stand-in provider, starts
// the core manager and returns when it is ready.
//
// The definitions are without their conversion webhook: all objects are written in the
// version in which they are stored.
func startClusterAPI(ctx context.Context, family *family, k *kubernetes, programs string) error {
	files, err := filepath.Glob(filepath.Join(programs, "crds", "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no definitions in %s", filepath.Join(programs, "crds"))
	}
	documents := strings.Split(providerDefinitions, "\n---\n")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		documents = append(documents, string(content))
	}
	for _, document := range documents {
		if err := define(ctx, k, document); err != nil {
			return err
		}
	}
	return startManager(ctx, family, k, programs)
}

// define creates a CustomResourceDefinition and waits until its kind is served.
func define(ctx context.Context, k *kubernetes, document string) error {
	var content object
	if err := yaml.Unmarshal([]byte(document), &content); err != nil {
		return err
	}
	definition := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(definition.Object, "spec", "conversion")
	name := definition.GetName()
	labels := definition.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	// By these, Cluster API finds the versions of a kind that fit its contracts.
	labels["cluster.x-k8s.io/v1beta1"] = "v1beta1"
	labels["cluster.x-k8s.io/v1beta2"] = "v1beta2"
	definition.SetLabels(labels)
	if _, err := k.client.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
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

func startManager(ctx context.Context, family *family, k *kubernetes, programs string) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	// Its webhook server starts only with a certificate, although nobody calls it.
	webhook := *k.authority
	webhook.directory = filepath.Join(k.state, "webhook")
	if _, err := webhook.serving("tls"); err != nil {
		return err
	}
	kubeconfig, err := k.kubeconfig("capi-manager", "system:masters")
	if err != nil {
		return err
	}
	manager, err := family.start(filepath.Join(programs, "cluster-api-core"),
		[]string{"POD_NAMESPACE=capi-system"},
		"--kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--webhook-port="+port(ports[0]),
		"--webhook-cert-dir="+webhook.directory,
		"--health-addr=127.0.0.1:"+port(ports[1]),
		"--diagnostics-address=127.0.0.1:"+port(ports[2]),
		"--insecure-diagnostics",
		"--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
	)
	if err != nil {
		return err
	}
	return manager.ready(ctx, "http://127.0.0.1:"+port(ports[1])+"/readyz")
}
